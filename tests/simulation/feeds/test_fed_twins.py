"""The checkers of feeds are tested: each twin is caught, by a checker that it is for."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.simulation import violation
from tests.simulation.feeds.fed_twins import FED_TWINS, FedTwin
from tests.simulation.feeds.landed_twins import LANDED_TWINS
from tests.simulation.feeds.once_world import ONCE_TWINS
from tests.simulation.feeds.pushed_twins import PUSHED_TWINS
from tests.simulation.feeds.routed_twins import ROUTED_TWINS
from tests.simulation.violation import outcome_of

SEEDS_MAX = 300
TWINS = FED_TWINS | PUSHED_TWINS | ROUTED_TWINS | ONCE_TWINS | LANDED_TWINS


def caught(twin: FedTwin, seed: int, scratch: Path) -> str | None:
    """Return the checker that a world with the twin fails, or None."""
    return outcome_of(twin.world(seed, scratch))


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", TWINS)
def test_the_world_notices_the_twin_of_a_feed(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    twin = TWINS[name]
    for patch in twin.patches:
        patch(monkeypatch)
    others = set()
    for seed in range(twin.first, twin.first + SEEDS_MAX):
        checker = caught(twin, seed, tmp_path)
        if checker in twin.checkers:
            return
        others.add(checker)
    pytest.fail(f"{name}: {twin.checkers} did not notice in {SEEDS_MAX} seeds; seen: {others}")


def test_every_checker_of_feeds_has_a_twin_that_it_catches() -> None:
    checkers = {value for name, value in vars(violation).items() if name.startswith("FED_")}
    assert checkers == {c for twin in TWINS.values() for c in twin.checkers if c in checkers}
