"""Log time: the time that an entry gets, and which leaps of a clock are believed (H35, H36).

Log time follows the committing machine's clock, by a day at the most. A clock that is further ahead
is recorded in the log, in an entry of its own, and believed when the clock of another machine has
got as far, or when ten minutes have passed on the same machine. One wrong clock thus moves log time
by a day at the most, unless it stays wrong for ten minutes.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable

import msgspec

from lakebed.errors import ClockAheadError
from lakebed.model.names import (
    MICROS_PER_SECOND,
    CommitId,
    Micros,
    TableId,
    TransactionNumber,
    digest_of,
)
from lakebed.observe import events
from lakebed.ports.clock import Clock
from lakebed.statestore.format_gate import AskFormats
from lakebed.statestore.log_entries.time_changes import (
    TIME_FORMAT,
    LeapTime,
    ReportTime,
    SetTimeBack,
)
from lakebed.statestore.log_entries.transactions import Transaction
from lakebed.statestore.table_state.state import Moment, TableState, TableVersion
from lakebed.statestore.table_state.time_records import (
    LEAP_MAX,
    TIME_ID,
    ClockReading,
    clock_readings,
)

CLOCK_AHEAD_MAX = 600 * MICROS_PER_SECOND
ALONE = 600 * MICROS_PER_SECOND
"""Microseconds of a machine's uptime after which its clock is believed though no other agrees."""
SET_BACK = ", set back"
"""Ends the name of a machine whose clock says less than it told the log before, which stands."""


TimeChange = ReportTime | LeapTime | SetTimeBack
Append = Callable[[Moment, tuple[Transaction], tuple[()]], None]
"""Appends an entry with transactions, behind the newest; it answers no commit."""


class NextTime(msgspec.Struct, frozen=True):
    """The log time of the next entry.

    changes: to be committed before it, in an entry of their own, whose time this is.
    """

    at: Micros
    changes: tuple[TimeChange, ...] = ()


class _Seen(msgspec.Struct, frozen=True):
    """The moment when this process first saw that the log ends with this entry.

    agreed: its clock was not a leap ahead of log time then.
    """

    number: TransactionNumber
    at: Micros
    uptime: Micros
    agreed: bool


class LogClock:
    """Chooses the time that entries of one table get. store_time: of the log's store. formats:
    tells what may be written; a lake that does not allow it yet goes without (H14)."""

    def __init__(
        self,
        clock: Clock,
        store_time: Callable[[], Micros],
        rng: random.Random,
        formats: AskFormats,
    ) -> None:
        self._formats = formats
        self._clock = clock
        self._store_time = store_time
        self._rng = rng
        self._seen: _Seen | None = None
        self.table: TableId | None = None
        """Whose log it is, for events."""

    def now(self) -> Micros:
        """Return what this machine's clock says.

        Raises:
            ClockAheadError: it is more than ten minutes ahead of the store's.
        """
        now = self._clock.now()
        if now > self._store_time() + CLOCK_AHEAD_MAX:
            raise ClockAheadError("this machine's clock is ahead", hint="set the clock")
        return now

    def see(self, last: TableVersion | Moment) -> None:
        """Remember that the log ends with this entry now: it was written before."""
        if self._seen is None or self._seen.number != last.number:
            now, uptime = self._clock.now(), self._clock.uptime().micros
            self._seen = _Seen(last.number, now, uptime, now <= last.at + LEAP_MAX)

    def next_time(self, state: TableState) -> NextTime:
        """Return the time of the next entry. Raises: as `now`."""
        head, now = state.head(), self.now()
        if not head.number or now <= head.at + LEAP_MAX or self._was_watched(head, now):
            return NextTime(Micros(max(head.at, now)))
        if self._formats().entry < TIME_FORMAT:
            return NextTime(now)
        machine, uptime = self._clock.uptime()
        own = {machine, machine + SET_BACK}
        readings = [r for r in clock_readings(state) if r.machine in own or not _refuted(r, head)]
        agreeing = [r for r in readings if r.machine in own and _goes_on(r, now, uptime)]
        next_number = TransactionNumber(head.number + 1)
        reached = [(head.at, next_number)]
        reached += [(now, r.number) for r in agreeing if uptime - r.uptime >= ALONE]
        reached += [(min(r.at, now), r.number) for r in readings if r.machine not in own]
        believed, upto = max(reached, key=lambda time: (time[0], -time[1]))
        if now <= believed + LEAP_MAX:
            believed, upto = now, next_number
        changes: list[TimeChange] = []
        if believed > head.at + LEAP_MAX:
            doubtful = [r.number for r in readings if _says_more(r, believed, head)]
            changes.append(LeapTime(min([upto, *doubtful])))
        if now > believed and not agreeing:
            set_back = any(r.machine == machine and _says_more(r, now, head) for r in readings)
            changes.append(ReportTime(machine + SET_BACK * set_back, now, uptime))
        return NextTime(believed, tuple(changes))

    def time_back(self, state: TableState) -> NextTime:
        """Return the time of an entry that sets log time back, where it is more than a day ahead of
        this machine's clock; without changes: it is not. Raises: as `now`."""
        head, now = state.head(), self.now()
        if head.at <= now + LEAP_MAX or self._formats().entry < TIME_FORMAT:
            return NextTime(head.at)
        return NextTime(now, (SetTimeBack(),))

    def append(self, state: TableState, time: NextTime, append: Append) -> None:
        """Commit what is told to the log of time, and tell an event. append: writes an entry.
        Raises: as that."""
        before = state.head().at
        append(*self.applied(state, time), ())
        events.emit(
            events.LOG_TIME_TOLD,
            level=logging.WARNING,
            table=self.table,
            changes=",".join(type(change).__name__ for change in time.changes),
            leap_seconds=(time.at - before) // MICROS_PER_SECOND,
        )

    def applied(self, state: TableState, time: NextTime) -> tuple[Moment, tuple[Transaction]]:
        """Apply what is told to the log of time, and return the entry that tells it: its moment and
        its only transaction."""
        head, id_ = state.head(), CommitId(f"{TIME_ID}{self._rng.getrandbits(128):032x}")
        moment = Moment(TransactionNumber(head.number + 1), time.at)
        digest = digest_of(id_.encode())
        transaction = Transaction(id_, digest, head.number, head.generation, time.changes)
        transaction.check_and_apply(state, moment)
        return moment, (transaction,)

    def _was_watched(self, head: TableVersion, now: Micros) -> bool:
        """Return whether this process has seen no commit since its clock agreed with log time, and
        the time that has passed since is what its uptime says."""
        seen = self._seen
        if seen is None or seen.number != head.number or not seen.agreed:
            return False
        passed = self._clock.uptime().micros - seen.uptime
        return now <= seen.at + passed + LEAP_MAX


def _goes_on(reading: ClockReading, now: Micros, uptime: Micros) -> bool:
    """Return whether the clock of this machine goes on from what it said before. When it was wrong
    and set right, or leapt again, it begins anew."""
    passed = uptime - reading.uptime
    return passed >= 0 and abs(now - (reading.at + passed)) <= LEAP_MAX


def _refuted(reading: ClockReading, head: TableVersion) -> bool:
    """Return whether log time went on for a day without what a clock said."""
    return reading.since < head.at - LEAP_MAX


def _says_more(reading: ClockReading, at: Micros, head: TableVersion) -> bool:
    """Return whether a clock said a time so late, and may be right: then what was done since is
    younger than a leap to the earlier time would make it."""
    return reading.at > at + LEAP_MAX and not _refuted(reading, head)
