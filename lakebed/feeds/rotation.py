"""When records that were read are committed: pure decisions."""

from __future__ import annotations

import msgspec

MINUTE = 60.0


class RotationLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What a round holds at the most.

    size: bytes of records.
    records: how many.
    seconds: how long the first one waits.
    idle_seconds: how long a round waits for more when all that there is has been read.
    """

    size: int = 64 << 20
    records: int = 1_000_000
    seconds: float = 10.0
    idle_seconds: float = 1.0


class Waiting(msgspec.Struct, frozen=True, kw_only=True):
    """Records that wait to be committed.

    since, newest: when the first and the last of them were read, in seconds of a monotonic clock.
    is_caught_up: whether the source has no more of them now.
    """

    size: int
    records: int
    since: float
    newest: float
    is_caught_up: bool


def reason_to_commit(limits: RotationLimits, waiting: Waiting, now: float) -> str:
    """Return why a round is committed now; "": it is not.

    now: seconds of the clock that `waiting` was measured by.
    """
    if not waiting.records:
        return ""
    if waiting.size >= limits.size:
        return "size"
    if waiting.records >= limits.records:
        return "records"
    if now - waiting.since >= limits.seconds:
        return "age"
    if waiting.is_caught_up and now - waiting.newest >= limits.idle_seconds:
        return "idle"
    return ""


def seconds_to_minute_mark(wall: float) -> float:
    """Return how long it is until a minute begins by the wall clock. wall: seconds."""
    return MINUTE - wall % MINUTE
