"""Feeds under faults, one seed after another: `make simulate` tries 20,000."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.simulation.feeds.fed_world import FedWorld
from tests.simulation.feeds.landed_world import LandedWorld
from tests.simulation.feeds.once_world import OnceWorld
from tests.simulation.feeds.pushed_world import PushedWorld
from tests.simulation.feeds.routed_world import RoutedWorld
from tests.simulation.tally import Tally
from tests.simulation.test_seeds import cases_of, fail_with, seeds_of, story_of

CASES = cases_of(seeds_of("FEEDS"))
PUSHED_EVERY, ROUTED_EVERY = 4, 8
"""Cases of seeds, of which one is for what is pushed, and for routes."""


@pytest.mark.timeout(900)
@pytest.mark.parametrize("seeds", CASES, ids=lambda s: f"{s[0]}-{s[-1]}")
def test_every_promise_of_feeds_is_kept_under_faults(
    seeds: Sequence[int], tmp_path: Path, tally: Tally
) -> None:
    stories = [story_of(seed, tmp_path, tally, FedWorld) for seed in seeds]
    fail_with([story for story in stories if story], seeds)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("seeds", CASES[::PUSHED_EVERY], ids=lambda s: f"{s[0]}-{s[-1]}")
def test_a_value_is_let_in_once_under_faults(
    seeds: Sequence[int], tmp_path: Path, tally: Tally
) -> None:
    stories = [story_of(seed, tmp_path, tally, OnceWorld) for seed in seeds]
    fail_with([story for story in stories if story], seeds)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("seeds", CASES[::PUSHED_EVERY], ids=lambda s: f"{s[0]}-{s[-1]}")
def test_what_is_pushed_is_there_once_under_faults(
    seeds: Sequence[int], tmp_path: Path, tally: Tally
) -> None:
    stories = [story_of(seed, tmp_path, tally, PushedWorld) for seed in seeds]
    fail_with([story for story in stories if story], seeds)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("seeds", CASES[1::ROUTED_EVERY], ids=lambda s: f"{s[0]}-{s[-1]}")
def test_a_record_is_in_the_table_of_its_route_under_faults(
    seeds: Sequence[int], tmp_path: Path, tally: Tally
) -> None:
    stories = [story_of(seed, tmp_path, tally, RoutedWorld) for seed in seeds]
    fail_with([story for story in stories if story], seeds)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("seeds", CASES[1::PUSHED_EVERY], ids=lambda s: f"{s[0]}-{s[-1]}")
def test_a_child_of_a_landing_table_is_told_what_it_missed_under_faults(
    seeds: Sequence[int], tmp_path: Path, tally: Tally
) -> None:
    stories = [story_of(seed, tmp_path, tally, LandedWorld) for seed in seeds]
    fail_with([story for story in stories if story], seeds)
