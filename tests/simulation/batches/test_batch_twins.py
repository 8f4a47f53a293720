"""The checker of batches is tested: each twin is caught, by a checker that it is for."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.simulation.batches.batch_twins import BATCH_TWINS
from tests.simulation.violation import outcome_of

SEEDS_MAX = 300


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", BATCH_TWINS)
def test_the_world_notices_the_twin_of_batches(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    twin = BATCH_TWINS[name]
    twin.patch(monkeypatch)
    others = set()
    for seed in range(SEEDS_MAX):
        checker = outcome_of(twin.world(seed, tmp_path))
        if checker in twin.checkers:
            return
        others.add(checker)
    pytest.fail(f"{name}: {twin.checkers} did not notice in {SEEDS_MAX} seeds; seen: {others}")
