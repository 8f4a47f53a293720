"""Batches under faults, one seed after another: `make simulate SEEDS=20000` tries more."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.simulation.batches.batched_world import BatchedWorld
from tests.simulation.batches.crowded_world import CrowdedWorld
from tests.simulation.tally import Tally
from tests.simulation.test_seeds import cases_of, fail_with, seeds_of, story_of

SEEDS = seeds_of("BATCHES")
CROWDED_EVERY = 20
"""In one world of so many nothing happens but that: they meet in most of them."""


@pytest.mark.timeout(900)
@pytest.mark.parametrize("seeds", cases_of(SEEDS), ids=lambda s: f"{s[0]}-{s[-1]}")
def test_every_submitted_file_is_taken_in_once_or_refused_under_faults(
    seeds: Sequence[int], tmp_path: Path, tally: Tally
) -> None:
    stories = [story_of(seed, tmp_path, tally, BatchedWorld) for seed in seeds]
    fail_with([story for story in stories if story], seeds)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("seeds", cases_of(SEEDS // CROWDED_EVERY), ids=lambda s: f"{s[0]}-{s[-1]}")
def test_submitters_batchers_and_tasks_that_meet_take_each_file_in_once(
    seeds: Sequence[int], tmp_path: Path, tally: Tally
) -> None:
    stories = [story_of(seed, tmp_path, tally, CrowdedWorld) for seed in seeds]
    fail_with([story for story in stories if story], seeds)
