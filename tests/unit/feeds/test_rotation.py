"""When records that were read are committed."""

import pytest

from lakebed.feeds.rotation import (
    Rotation,
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


def test_rounds_become_smaller_until_one_fits_and_larger_again() -> None:
    rotation = Rotation(LIMITS)
    sizes = []
    while rotation.divide([rotation.size // 2, rotation.size - rotation.size // 2]):
        sizes.append(rotation.size)
    assert sizes == [500, 250, 125, 62, 31, 15, 7, 3, 1]
    assert rotation.reason(waiting(size=1), now=110, wall=Micros(0)) == "size"
    for _ in range(40):
        rotation.committed()
    assert rotation.size == LIMITS.size


@pytest.mark.parametrize(
    ("reads", "may_be_smaller", "size"),
    [([400], True, 200), ([900, 300], True, 500), ([1_001], False, 1_000), ([1], False, 1_000)],
)
def test_a_round_of_one_item_can_be_no_smaller(
    reads: list[int], *, may_be_smaller: bool, size: int
) -> None:
    rotation = Rotation(LIMITS)
    assert rotation.divide(reads) is may_be_smaller
    assert rotation.size == size
