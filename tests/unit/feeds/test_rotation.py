"""When records that were read are committed."""

import pytest

from lakebed.feeds.rotation import (
    RotationLimits,
    Waiting,
    minute_of,
    reason_to_commit,
)
from lakebed.model.names import Micros

LIMITS = RotationLimits(size=1_000, records=10, seconds=60, idle_seconds=5)
SOME = Waiting(size=10, records=1, since=100, newest=110, minute=7, is_caught_up=False)


def waiting(**given: float) -> Waiting:
    return Waiting(**{name: getattr(SOME, name) for name in SOME.__struct_fields__} | given)


@pytest.mark.parametrize(
    ("held", "now", "reason"),
    [
        (SOME, 110, ""),
        (waiting(size=999), 110, ""),
        (waiting(size=1_000), 110, "size"),
        (waiting(records=9), 110, ""),
        (waiting(records=10), 110, "records"),
        (SOME, 159, ""),
        (SOME, 160, "age"),
        (waiting(is_caught_up=True), 114, ""),
        (waiting(is_caught_up=True), 115, "idle"),
        (waiting(records=0, size=0, is_caught_up=True), 10_000, ""),
    ],
)
def test_a_round_is_committed_at_its_limits_and_when_nothing_more_comes(
    held: Waiting, now: float, reason: str
) -> None:
    assert reason_to_commit(LIMITS, held, now=now, wall=Micros(0)) == reason


def test_a_round_is_committed_when_a_minute_begins_where_that_is_wanted() -> None:
    wall = Micros(7 * 60_000_000 + 59_999_999)
    at_minutes = RotationLimits(seconds=600, at_minutes=True)
    assert minute_of(wall) == 7
    assert not reason_to_commit(at_minutes, SOME, now=110, wall=wall)
    assert reason_to_commit(at_minutes, SOME, now=110, wall=Micros(wall + 1)) == "minute"
    assert not reason_to_commit(LIMITS, SOME, now=110, wall=Micros(wall + 1))
