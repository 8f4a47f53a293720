"""Versions under faults, one seed after another: `make simulate SEEDS=20000` tries more."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.simulation.tally import Tally
from tests.simulation.test_seeds import cases_of, fail_with, seeds_of, story_of
from tests.simulation.versions.stalled_world import StalledWorld
from tests.simulation.versions.versioned_world import VersionedWorld

SEEDS = seeds_of("VERSIONS")
STALLED_EVERY = 20
"""In one world of so many nothing happens but that: it meets a collection in most of them."""


@pytest.mark.timeout(900)
@pytest.mark.parametrize("seeds", cases_of(SEEDS), ids=lambda s: f"{s[0]}-{s[-1]}")
def test_every_version_that_is_kept_stays_whole_under_faults(
    seeds: Sequence[int], tmp_path: Path, tally: Tally
) -> None:
    stories = [story_of(seed, tmp_path, tally, VersionedWorld) for seed in seeds]
    fail_with([story for story in stories if story], seeds)


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "seeds",
    cases_of(SEEDS // STALLED_EVERY),
    ids=lambda s: f"{s[0]}-{s[-1]}",
)
def test_what_is_kept_while_a_collection_hangs_before_its_horizon_stays_whole(
    seeds: Sequence[int], tmp_path: Path, tally: Tally
) -> None:
    stories = [story_of(seed, tmp_path, tally, StalledWorld) for seed in seeds]
    fail_with([story for story in stories if story], seeds)
