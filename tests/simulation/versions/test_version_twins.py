"""The checkers of versions are tested: each twin is caught, by a checker that it is for."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.simulation.versions.version_twins import VERSION_TWINS, VersionTwin
from tests.simulation.violation import outcome_of

SEEDS_MAX = 300


def caught(twin: VersionTwin, seed: int, scratch: Path) -> str | None:
    """Return the checker that a world with the twin fails, or None."""
    return outcome_of(twin.world(seed, scratch, is_harsh=True))


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", VERSION_TWINS)
def test_the_world_notices_the_twin_of_versions(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    twin = VERSION_TWINS[name]
    twin.patch(monkeypatch)
    others = set()
    for seed in range(SEEDS_MAX):
        checker = caught(twin, seed, tmp_path)
        if checker in twin.checkers:
            return
        others.add(checker)
    pytest.fail(f"{name}: {twin.checkers} did not notice in {SEEDS_MAX} seeds; seen: {others}")
