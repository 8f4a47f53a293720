"""Groups that age under faults; and the checker is tested: each twin is caught."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from lakebed.backends.memory import row_processing
from lakebed.compaction import run_job
from tests.simulation.groups.grouped_world import GroupedWorld
from tests.simulation.tally import Tally
from tests.simulation.test_seeds import SEEDS, cases_of, fail_with, story_of
from tests.simulation.violation import ROWS, check_noticed

SEEDS_MIN = 100


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "seeds", cases_of(max(SEEDS // 10, SEEDS_MIN)), ids=lambda s: f"{s[0]}-{s[-1]}"
)
def test_groups_leave_as_a_whole_whatever_was_merged_under_faults(
    seeds: Sequence[int], tmp_path: Path, tally: Tally
) -> None:
    stories = [story_of(seed, tmp_path, tally, GroupedWorld) for seed in seeds]
    fail_with([story for story in stories if story], seeds)


def ages_at_partial_merges(monkeypatch: pytest.MonkeyPatch) -> None:
    """Takes the rows of some files for all rows of their keys."""
    monkeypatch.setattr(run_job, "_has_all", lambda *_: True)


def rows_age_each_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves a row out when it is too old, whatever others of its key are."""
    monkeypatch.setattr(row_processing, "group_ages", lambda *_: None)


TWINS: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "ages at partial merges": ages_at_partial_merges,
    "rows age each by itself": rows_age_each_by_itself,
}


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", TWINS)
def test_the_world_notices_the_twin_of_groups(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    TWINS[name](monkeypatch)
    check_noticed(f"groups: {name}", {ROWS}, lambda seed: GroupedWorld(seed, tmp_path))
