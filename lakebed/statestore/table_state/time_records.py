"""Holds what a state knows of time beside log time itself: when entries were written, what clocks
said, and the last leap.

The latter two are kept among the positions, which are digested, under names that no source has: so
a state of a log without them is what it was before there were any (H14).
"""

from __future__ import annotations

import msgspec

from lakebed.model.names import MICROS_PER_SECOND, Micros, TransactionNumber
from lakebed.statestore.table_state.state import TableState

TIME_ID = "time:"
"""Begins the ids of transactions that record time in the log."""
READINGS_MAX = 16
"""Clocks that a state remembers, those that were recorded last."""

LEAPS_OUTLIVED = 10
"""Leaps of log time by which ids and items that are kept do not grow old."""
LEAP_MAX = 86_400 * MICROS_PER_SECOND
"""Log time follows a single clock so far; and so long after it was recorded another clock may
confirm what it said."""

OWN_NAMES = "_lakebed/"
"""Begins the names of what is no source's position."""

_AT = (
    "SELECT coalesce("
    "(SELECT at FROM entry_times WHERE number <= ?1 ORDER BY number DESC LIMIT 1), "
    "(SELECT at FROM entry_times ORDER BY number LIMIT 1), ?2)"
)
_LEAPS = (
    "SELECT before, at FROM (SELECT lag(at) OVER (ORDER BY number) AS before, at FROM entry_times)"
    " WHERE at - before > ? ORDER BY at DESC"
)
_TIME_ENTRIES = "SELECT 1 FROM commits WHERE id > ?1 AND id < ?1 || char(1114111) AND number > ?2"
_CLOCK, _CLOCKS_END, _LEAP = f"{OWN_NAMES}clock/", f"{OWN_NAMES}clock0", f"{OWN_NAMES}leap"


class ClockReading(msgspec.Struct, frozen=True, array_like=True):
    """The reading of a machine's clock in an entry, which log time did not follow.

    uptime: of the machine then.
    number, since: of the entry, and its log time.
    """

    machine: str
    at: Micros
    uptime: Micros
    number: TransactionNumber
    since: Micros


class Leap(msgspec.Struct, frozen=True, array_like=True):
    """The last leap of log time, between two times.

    upto: what was done before that entry ages since then.
    """

    upto: TransactionNumber
    before: Micros
    at: Micros


_encode = msgspec.msgpack.Encoder().encode
_decode_reading = msgspec.msgpack.Decoder(ClockReading).decode
_decode_leap = msgspec.msgpack.Decoder(Leap).decode


def clock_readings(state: TableState) -> list[ClockReading]:
    """Return what clocks said that were ahead, of each machine what it said last."""
    rows = state.connection.execute(
        "SELECT value FROM positions WHERE name > ? AND name < ?", (_CLOCK, _CLOCKS_END)
    )
    return [_decode_reading(value) for (value,) in rows]


def put_reading(state: TableState, reading: ClockReading) -> None:
    """Keep what a clock said, and forget what was said longest ago where there is too much."""
    _put(state, _CLOCK + reading.machine, reading)
    found = sorted(clock_readings(state), key=lambda r: r.number)
    for old in found[:-READINGS_MAX]:
        state.write("DELETE FROM positions WHERE name = ?", (_CLOCK + old.machine,))


def last_leap(state: TableState) -> Leap | None:
    """Return the last leap of log time; None: there was none."""
    row = state.position(_LEAP)
    return None if row is None else _decode_leap(row[0])


def time_without_leap(state: TableState, now: Micros, seconds: int) -> Micros:
    """Return log time as if its last leap had not been; once log time has gone on for so many
    seconds since that leap, return log time itself (H35).

    Files of batches, which lie beside the log, are judged by this time: a leap does not make them
    younger. So one wrong clock that was believed makes none of them old.
    """
    leap = last_leap(state)
    if leap is None or now >= leap.at + seconds * MICROS_PER_SECOND:
        return now
    return Micros(min(now, leap.before + max(0, now - leap.at)))


def old_before(state: TableState, now: Micros, seconds: int) -> Micros:
    """Return a log time. Entries before it are old: their ids and items may be forgotten.

    seconds: for so long they are kept. Until log time has gone on for so long since its last leap,
        that leap does not count, and each leap before it counts for a tenth of that time (H35).

    So ten clocks that are wrong, one after the other, make nothing old that was done before them.
    What a table did that is used less than daily is old after some twenty leaps, as every other one
    makes entries before it as young as it is.
    """
    leap, kept = last_leap(state), seconds * MICROS_PER_SECOND
    if leap is None or now >= leap.at + kept:
        return Micros(now - kept)
    left, upto = kept, now
    leaps: list[tuple[Micros, Micros]] = state.connection.execute(_LEAPS, (LEAP_MAX,)).fetchall()
    for newer, (before, at) in enumerate(leaps):
        if left <= upto - at:
            break
        left = max(0, left - (upto - at) - (kept // LEAPS_OUTLIVED if newer else 0))
        upto = before
    return Micros(upto - left)


def is_time_recorded_since(state: TableState, base: TransactionNumber) -> bool:
    """Return whether an entry above this number, which is not below the floor, records time: log
    time may have leapt there."""
    return state.connection.execute(_TIME_ENTRIES, (TIME_ID, base)).fetchone() is not None


def put_leap(state: TableState, leap: Leap) -> None:
    """Keep it in place of the one before."""
    _put(state, _LEAP, leap)


def forget_clocks(state: TableState) -> None:
    """Forget what clocks said, and the last leap."""
    state.write("DELETE FROM positions WHERE name > ? AND name < ?", (_CLOCK, _CLOCKS_END))
    state.write("DELETE FROM positions WHERE name = ?", (_LEAP,))


def _put(state: TableState, name: str, value: ClockReading | Leap) -> None:
    state.write("INSERT OR REPLACE INTO positions VALUES (?, ?, 0)", (name, _encode(value)))


def created_at(state: TableState) -> Micros | None:
    """Return when a table was created that has nothing but its creation; None: it has more."""
    others = "SELECT count(*) FROM commits WHERE user OR substr(id, 1, ?) <> ?"
    (count,) = state.connection.execute(others, (len(TIME_ID), TIME_ID)).fetchone()
    if count != 1:
        return None
    (at,) = state.connection.execute("SELECT min(at) FROM entry_times").fetchone()
    return Micros(at)


def written_at(state: TableState, number: TransactionNumber) -> Micros:
    """Return about when an entry was written, to a minute or so. For one that is older than all
    that is remembered: when the oldest of those was."""
    (at,) = state.connection.execute(_AT, (number, state.head().at)).fetchone()
    return Micros(at)
