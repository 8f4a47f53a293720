"""Source splits are shared among workers: all agree, and little moves."""

import random

import pytest

from lakebed.feeds.claims import wanted_owner, wanted_splits
from lakebed.ports.leases import WorkerId

SPLITS = [f"c1/topic/{n}" for n in range(2_000)]


def workers(count: int, seed: int = 0) -> list[WorkerId]:
    rng = random.Random(seed)
    return [WorkerId(f"host-{rng.getrandbits(40):x}") for _ in range(count)]


def owners(living: list[WorkerId]) -> dict[str, WorkerId | None]:
    return {split: wanted_owner(split, living) for split in SPLITS}


def test_without_workers_there_is_no_owner() -> None:
    assert wanted_owner("a", []) is None
    assert wanted_splits(WorkerId("ann"), ["a"], []) == []


def test_the_owner_does_not_depend_on_the_order_of_workers() -> None:
    living = workers(7)
    expected = owners(living)
    random.Random(1).shuffle(living)
    assert owners(living) == expected


@pytest.mark.parametrize("count", [1, 2, 3, 8, 20])
@pytest.mark.parametrize("seed", range(3))
def test_each_worker_gets_about_its_share(count: int, seed: int) -> None:
    living = workers(count, seed)
    shares = [len(wanted_splits(worker, SPLITS, living)) for worker in living]
    assert sum(shares) == len(SPLITS), "each source split has one owner"
    fair = len(SPLITS) / count
    assert max(shares) < fair + 5 * fair**0.5
    assert min(shares) > fair - 5 * fair**0.5


@pytest.mark.parametrize("count", [1, 2, 5, 19])
@pytest.mark.parametrize("seed", range(3))
def test_a_worker_that_joins_takes_its_share_and_moves_nothing_else(count: int, seed: int) -> None:
    before, new = workers(count, seed), WorkerId("new")
    old, now = owners(before), owners([*before, new])
    moved = [split for split in SPLITS if old[split] != now[split]]
    assert {now[split] for split in moved} == {new}
    fair = len(SPLITS) / (count + 1)
    assert abs(len(moved) - fair) < 5 * fair**0.5


@pytest.mark.parametrize("count", [2, 5, 20])
def test_a_worker_that_ends_moves_its_own_source_splits_only(count: int) -> None:
    before = workers(count)
    old, now = owners(before), owners(before[1:])
    moved = {split for split in SPLITS if old[split] != now[split]}
    assert moved == {split for split in SPLITS if old[split] == before[0]}
