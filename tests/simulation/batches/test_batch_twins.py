"""The checker of batches is tested: each twin is caught, by a checker that it is for."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.simulation.batches.batch_twins import BATCH_TWINS
from tests.simulation.violation import check_noticed


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", BATCH_TWINS)
def test_the_world_notices_the_twin_of_batches(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    twin = BATCH_TWINS[name]
    twin.patch(monkeypatch)
    check_noticed(f"batches: {name}", twin.checkers, lambda seed: twin.world(seed, tmp_path))
