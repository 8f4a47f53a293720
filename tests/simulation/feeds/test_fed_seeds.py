"""Feeds under faults, one seed after another: `make simulate` tries 20,000."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.simulation.feeds.fed_world import FedWorld
from tests.simulation.feeds.landed_world import LandedWorld
from tests.simulation.feeds.leased_world import LeasedWorld
from tests.simulation.feeds.once_world import OnceWorld
from tests.simulation.feeds.pushed_world import PushedWorld
from tests.simulation.feeds.routed_world import RoutedWorld
from tests.simulation.feeds.timed_world import TimedWorld
from tests.simulation.tally import KINDS_OF_FEEDS, Tally, gathered
from tests.simulation.test_seeds import CHOSEN, cases_of, fail_with, seeds_of, story_of

CASES = cases_of(seeds_of("FEEDS"))


def some(first: int, every: int) -> list[list[int]]:
    """Return some cases of seeds; all, if they were chosen."""
    return CASES if CHOSEN else CASES[first::every]


CASES_OF = {
    FedWorld: CASES,
    OnceWorld: some(0, 4),
    PushedWorld: some(0, 4),
    RoutedWorld: some(1, 8),
    LandedWorld: some(1, 4),
    LeasedWorld: some(2, 4),
    TimedWorld: some(3, 4),
}
ENOUGH = 500
"""Worlds in which every fault happens."""


class Seeds:
    """Tries worlds of feeds, and looks at what happened in all of them."""

    def __init__(self, scratch: Path, shared: Path, tally: Tally) -> None:
        self._scratch = scratch
        self._shared = shared
        self._tally = tally

    def run(self, kind: type[FedWorld], seeds: Sequence[int]) -> None:
        """Try some worlds. The last case to end fails, too, if a kind of fault never happened."""
        own = Tally()
        stories = [story_of(seed, self._scratch, own, kind) for seed in seeds]
        self._tally.merge(own.worlds, own.counts)
        fail_with([story for story in stories if story], seeds)
        count = sum(map(len, CASES_OF.values()))
        total = gathered(self._shared, f"{kind.__name__}-{seeds[0]}", own, of=count)
        if total is not None and total.worlds >= ENOUGH:
            never = total.never(KINDS_OF_FEEDS)
            assert not never, "a fault that never happens is not simulated"


@pytest.fixture
def worlds(tmp_path: Path, shared_folder: Path, tally: Tally) -> Seeds:
    return Seeds(tmp_path, shared_folder / "feeds", tally)


def cases(kind: type[FedWorld]) -> pytest.MarkDecorator:
    """Return the cases of a kind of worlds."""
    return pytest.mark.parametrize("seeds", CASES_OF[kind], ids=lambda s: f"{s[0]}-{s[-1]}")


@pytest.mark.timeout(900)
@cases(FedWorld)
def test_every_promise_of_feeds_is_kept_under_faults(seeds: Sequence[int], worlds: Seeds) -> None:
    worlds.run(FedWorld, seeds)


@pytest.mark.timeout(900)
@cases(OnceWorld)
def test_a_value_is_let_in_once_under_faults(seeds: Sequence[int], worlds: Seeds) -> None:
    worlds.run(OnceWorld, seeds)


@pytest.mark.timeout(900)
@cases(PushedWorld)
def test_what_is_pushed_is_there_once_under_faults(seeds: Sequence[int], worlds: Seeds) -> None:
    worlds.run(PushedWorld, seeds)


@pytest.mark.timeout(900)
@cases(RoutedWorld)
def test_a_record_is_in_the_table_of_its_route_under_faults(
    seeds: Sequence[int], worlds: Seeds
) -> None:
    worlds.run(RoutedWorld, seeds)


@pytest.mark.timeout(900)
@cases(LandedWorld)
def test_a_child_of_a_landing_table_is_told_what_it_missed_under_faults(
    seeds: Sequence[int], worlds: Seeds
) -> None:
    worlds.run(LandedWorld, seeds)


@pytest.mark.timeout(900)
@cases(LeasedWorld)
def test_workers_with_leases_take_each_record_once_under_faults(
    seeds: Sequence[int], worlds: Seeds
) -> None:
    worlds.run(LeasedWorld, seeds)


@pytest.mark.timeout(900)
@cases(TimedWorld)
def test_sealed_windows_are_complete_under_faults(seeds: Sequence[int], worlds: Seeds) -> None:
    worlds.run(TimedWorld, seeds)
