"""When records that were read are committed: pure decisions."""

from __future__ import annotations

import msgspec

from lakebed.model.names import Micros

MINUTE_MICROS = 60_000_000


class RotationLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What a round holds at the most.

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

    now: seconds of the clock that `waiting` was measured by. wall: the wall clock.
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
