"""Defines what the log says of time itself: what a machine's clock said, and that log time leaps
(H35).

`check` may refuse and changes nothing. `apply` never refuses (protocol H4); for a released format
what it does never changes (H14).
"""

from __future__ import annotations

import json

import msgspec

from lakebed.model.names import Micros, TransactionNumber
from lakebed.statestore.table_state.state import Moment, TableState
from lakebed.statestore.table_state.state_json import PROCESSING
from lakebed.statestore.table_state.time_records import (
    ClockReading,
    Leap,
    forget_clocks,
    last_leap,
    put_leap,
    put_reading,
)

TIME_FORMAT = 4
"""Format of log entries that change log time."""


class ReportTime(msgspec.Struct, frozen=True, array_like=True, tag="tell_time"):
    """The reading of a clock more than a day ahead of log time, which does not follow it yet.

    machine, uptime: which machine it is since it was started, and for how long it has been up.
    """

    machine: str
    at: Micros
    uptime: Micros

    def check(self, state: TableState) -> None:
        """Nothing can refuse it."""

    def apply(self, state: TableState, moment: Moment) -> None:
        reading = ClockReading(self.machine, self.at, self.uptime, moment.number, moment.at)
        put_reading(state, reading)


class LeapTime(msgspec.Struct, frozen=True, array_like=True, tag="leap_time"):
    """Log time leaps to the time of this entry, which is believed.

    Entries since the last leap may have been written at any time up to now: what they did is as
    young as the leap, and long readers have as much time left as before it.

    upto: what was done below this number was done before the clock said the time that is believed;
        it ages from here.
    """

    upto: TransactionNumber

    def check(self, state: TableState) -> None:
        """Nothing can refuse it."""

    def apply(self, state: TableState, moment: Moment) -> None:
        before = state.head().at
        leap = last_leap(state)
        since = 0 if leap is None else leap.upto
        for table in ("entry_times", "garbage", "jobs"):
            state.write(
                f"UPDATE {table} SET at = ? WHERE number >= ?",  # noqa: S608 - names from above
                (moment.at, since),
            )
        for table in ("pins", "followers"):
            state.write(
                f"UPDATE {table} SET until = until + ? WHERE until >= ?",  # noqa: S608 - from above
                (moment.at - before, before),
            )
        put_leap(state, Leap(self.upto, before, moment.at))


class SetTimeBack(msgspec.Struct, frozen=True, array_like=True, tag="time_back"):
    """Log time was ahead of what is true, and goes back to the time of this entry.

    What was done is as young as that. Long readers have as much time left as before. Rows that are
    gone for good because processing was changed are those that would be if it had been changed at
    the right time.
    """

    def check(self, state: TableState) -> None:
        """Nothing can refuse it."""

    def apply(self, state: TableState, moment: Moment) -> None:
        before = state.head().at
        for table in ("entry_times", "garbage", "jobs"):
            state.write(
                f"UPDATE {table} SET at = min(at, ?)",  # noqa: S608 - names from above
                (moment.at,),
            )
        ahead = max(0, before - moment.at)
        for table in ("pins", "followers"):
            state.write(
                f"UPDATE {table} SET until = until - ? WHERE until >= ?",  # noqa: S608 - from above
                (ahead, before),
            )
        forget_clocks(state)  # and the last leap: whatever was done ages from the next one
        settings = json.loads(state.write("SELECT settings FROM head").fetchone()[0])
        age_off = (settings.get(PROCESSING) or {}).get("age_off") or {}
        if age_off.get("gone_before") is not None:
            age_off["gone_before"] -= ahead
            state.write("UPDATE head SET settings = ?", (json.dumps(settings),))
