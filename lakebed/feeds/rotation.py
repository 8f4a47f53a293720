"""Decides when records that were read are committed, and how many at once. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from lakebed.model.names import Micros

MINUTE_MICROS = 60_000_000
REPORTS_EACH, SILENCES_REPORTED = 0.4, 3.0
"""Shares of the time until a source split is idle: how often its owner says that it has no more,
and how long it does."""


class RotationLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of what a round holds.

    size: bytes of records.
    records: how many.
    seconds: how long the first one waits.
    idle_seconds: how long a round waits for more when all that there is has been read.
    at_minutes: whether a round is committed when a minute of the wall clock begins, too.
    """

    size: int = 64 << 20
    records: int = 1_000_000
    seconds: float = 10.0
    idle_seconds: float = 1.0
    at_minutes: bool = False


class Waiting(msgspec.Struct, frozen=True, kw_only=True):
    """Records that wait to be committed.

    since, newest: when the first and the last of them were read, in seconds of a monotonic clock.
    minute: of the wall clock, in which the first one was read.
    is_caught_up: whether the source has no more of them now.
    """

    size: int
    records: int
    since: float
    newest: float
    minute: int
    is_caught_up: bool


def minute_of(wall: Micros) -> int:
    """Return the minute of a wall clock."""
    return wall // MINUTE_MICROS


def reason_to_commit(limits: RotationLimits, waiting: Waiting, *, now: float, wall: Micros) -> str:
    """Return why a round is committed now; "": it is not.

    now: seconds of the clock that `waiting` was measured by.
    wall: the wall clock.
    """
    if not waiting.records:
        return ""
    if waiting.size >= limits.size:
        return "size"
    if waiting.records >= limits.records:
        return "records"
    if now - waiting.since >= limits.seconds:
        return "age"
    if limits.at_minutes and minute_of(wall) != waiting.minute:
        return "minute"
    if waiting.is_caught_up and now - waiting.newest >= limits.idle_seconds:
        return "idle"
    return ""


class Rotation:
    """The schedule by which one pipeline commits what it holds.

    limits: of its rounds.
    idle_seconds: how long a source split says nothing until it is idle; None: event time does not
        count.
    doubles: whether rounds that are committed grow fast.
    """

    def __init__(self, limits: RotationLimits, idle_seconds: float | None = None) -> None:
        self.limits = limits
        self._idle_seconds = idle_seconds
        self._size = limits.size
        self._reported = 0.0
        self.doubles = False

    @property
    def size(self) -> int:
        """Return how many bytes a round may hold now: fewer than the limit after one that was too
        large."""
        return self._size

    @property
    def reports_silence(self) -> bool:
        """Return whether the table hears of source splits that have no more records."""
        return self._idle_seconds is not None

    def reason(self, waiting: Waiting, *, now: float, wall: Micros) -> str:
        """Return why a round is committed now; "": it is not."""
        limits = msgspec.structs.replace(self.limits, size=self._size)
        return reason_to_commit(limits, waiting, now=now, wall=wall)

    def has_silence_to_report(self, waiting: Waiting, now: float) -> bool:
        """Return whether the table is to hear that source splits have no more records: for some
        time after the last ones, so that they hold the watermark back no longer (protocol R18)."""
        if self._idle_seconds is None or not waiting.is_caught_up or not waiting.newest:
            return False
        is_time = now - self._reported >= self._idle_seconds * REPORTS_EACH
        return is_time and now - waiting.newest <= self._idle_seconds * SILENCES_REPORTED

    def reported(self, now: float) -> None:
        """Remember that the table hears now which source splits have no more records."""
        self._reported = now

    def divide(self, reads: Sequence[int]) -> bool:
        """Let the next rounds be half as large as one that cannot be committed whole. reads: bytes
        of each read that it came in. Returns whether they can be smaller: one read gives at least
        a record, or all records of an item."""
        size = sum(reads)
        if size <= 1 or (len(reads) == 1 and size > self._size):
            return False
        self._size = max(1, min(size, self._size) // 2)
        return True

    def restore(self) -> None:
        """Let the next round be as large as the limit again."""
        self._size = self.limits.size

    def committed(self) -> None:
        """Let the next round be a fourth larger than this one was allowed to be, or twice as large
        where rounds double."""
        more = self._size if self.doubles else self._size // 4 + 1
        self._size = min(self.limits.size, self._size + more)
