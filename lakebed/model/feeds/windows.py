"""Event time of a connection's records, and the windows of event time in which its rows are counted
(protocol R18, R19).

A window holds the event times from its start up to its end, which lies outside. All times are
microseconds since 1970 in UTC.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Literal

import msgspec

from lakebed.errors import InvalidError
from lakebed.model.names import MICROS_PER_SECOND, Micros

DAY_SECONDS = 86_400
WINDOWS_MAX = 10_000
"""Most windows in which one commit counts rows."""
SPLITS_MAX = 10_000
"""Source splits that one change names."""
TIME_MIN, TIME_MAX = Micros(-62_135_596_800_000_000), Micros(253_402_300_800_000_000)
"""Event times lie in the years 1 to 9999."""

LateRows = Literal["accept", "divert", "drop"]


class WindowRules(msgspec.Struct, frozen=True, array_like=True):
    """The rules of a connection's definition for event time. A commit carries them, so that all
    readers of the log arrive at the same.

    window_seconds: length of a window, at most a day. Windows begin at multiples of it since 1970.
    disorder_seconds: how far behind the greatest event time of its source split a record may come.
    seal_seconds: how long a window stays open behind the watermark.
    idle_seconds: log time for which its owner finds nothing in a source split until it holds the
        watermark back no more; and for which what its owner said counts.
    ahead_seconds_max: how far an event time may lie ahead of log time.
    late: what becomes of rows of sealed windows: `accept` stores them, `divert` puts them into the
        table of late rows, `drop` leaves them out.
    """

    window_seconds: int
    disorder_seconds: int = 0
    seal_seconds: int = 0
    idle_seconds: int = 60
    ahead_seconds_max: int = DAY_SECONDS
    late: LateRows = "accept"

    def check(self) -> None:
        """Refuse what cannot work. Raises: InvalidError."""
        bounds = {
            "window_seconds": (1, DAY_SECONDS),
            "disorder_seconds": (0, 366 * DAY_SECONDS),
            "seal_seconds": (0, 366 * DAY_SECONDS),
            "idle_seconds": (1, 366 * DAY_SECONDS),
            "ahead_seconds_max": (0, 366 * DAY_SECONDS),
        }
        for name, (least, most) in bounds.items():
            value = getattr(self, name)
            if not least <= value <= most:
                hint = f"use {least:,} to {most:,}"
                raise InvalidError("not a rule of windows", setting=name, value=value, hint=hint)

    @property
    def window(self) -> int:
        """Length of a window in microseconds."""
        return self.window_seconds * MICROS_PER_SECOND

    @property
    def idle(self) -> int:
        """Log time until a source split is idle, in microseconds."""
        return self.idle_seconds * MICROS_PER_SECOND


class SplitTime(msgspec.Struct, frozen=True, array_like=True):
    """The event time of one source split, as a commit reports it.

    event_time: the greatest of the records that it takes; None: it takes none with a time.
    caught_up: its owner found no record behind them. It is repeated while that stays so.
    ended: the source has no such source split any more, or it can never have another record. One
        that has records again begins at the watermark.
    """

    source_split: str
    event_time: Micros | None = None
    caught_up: bool = False
    ended: bool = False


class WindowCount(msgspec.Struct, frozen=True, array_like=True):
    """Rows of one commit whose event time lies in one window.

    start: of the window.
    rows: that the commit stores. Those that the table's own filter leaves out may be among them.
    late: that were diverted or dropped, as the window is sealed. Late ones that are accepted are
        among `rows`: which they are, the state knows.
    """

    start: Micros
    rows: int = 0
    late: int = 0


def window_start(at: Micros, window_seconds: int) -> Micros:
    """Return the start of the window that an event time lies in."""
    window = window_seconds * MICROS_PER_SECOND
    return Micros(at // window * window)


def check_splits(names: tuple[str, ...]) -> None:
    """Refuse too many source splits, and one named twice. Raises: InvalidError."""
    if len(names) > SPLITS_MAX:
        raise InvalidError(
            "too many source splits",
            count=len(names),
            max=SPLITS_MAX,
            hint="spread the source splits over several commits",
        )
    if len(set(names)) < len(names):
        raise InvalidError("a source split is named twice in one commit", hint="name each once")


def check_windows(windows: tuple[WindowCount, ...], rules: WindowRules) -> None:
    """Refuse windows that are none of these rules. Raises: InvalidError."""
    if len(windows) > WINDOWS_MAX:
        hint = "commit fewer records at once, or use longer windows"
        raise InvalidError("too many windows", count=len(windows), max=WINDOWS_MAX, hint=hint)
    if any(one.start >= other.start for one, other in pairwise(windows)):
        raise InvalidError(
            "the windows of a commit are not in order, or one comes twice",
            hint="sort them by start, and add up what is of one window",
        )
    for window in windows:
        if window.start % rules.window or not TIME_MIN <= window.start <= TIME_MAX:
            raise InvalidError(
                "no window begins at this time",
                start=window.start,
                hint=f"give a multiple of the window, {rules.window} microseconds",
            )
        if min(window.rows, window.late) < 0 or not window.rows + window.late:
            raise InvalidError(
                "a window counts no rows, or fewer than none",
                start=window.start,
                hint="leave out windows without rows",
            )
        if window.late and rules.late == "accept":
            hint = "count all rows that are stored as rows"
            raise InvalidError("late rows are accepted", start=window.start, hint=hint)


def check_ahead(
    splits: tuple[SplitTime, ...], windows: tuple[WindowCount, ...], *, latest: int
) -> None:
    """Refuse event times that lie too far in the future. latest: that may be. Raises:
    InvalidError."""
    times = [split.event_time for split in splits if split.event_time is not None]
    times += [window.start for window in windows[-1:]]
    if times and max(times) > latest:
        hint = "give such records their verdict: `time-out-of-bounds`"
        raise InvalidError(
            "an event time is ahead of log time", time=max(times), latest=latest, hint=hint
        )
    if times and min(times) < TIME_MIN:
        raise InvalidError(
            "an event time lies before the year 1",
            time=min(times),
            hint="give such records their verdict: `time-out-of-bounds`",
        )
