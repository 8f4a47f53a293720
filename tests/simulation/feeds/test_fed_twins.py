"""The checkers of feeds are tested: each twin is caught, by a checker that it is for."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.simulation import violation
from tests.simulation.feeds.fed_twins import FED_TWINS
from tests.simulation.feeds.landed_twins import LANDED_TWINS
from tests.simulation.feeds.leased_world import LEASED_TWINS
from tests.simulation.feeds.once_world import ONCE_TWINS
from tests.simulation.feeds.pushed_twins import PUSHED_TWINS
from tests.simulation.feeds.routed_twins import ROUTED_TWINS
from tests.simulation.feeds.timed_world import TIMED_TWINS
from tests.simulation.violation import check_noticed

TWINS = (
    FED_TWINS | PUSHED_TWINS | ROUTED_TWINS | ONCE_TWINS | LANDED_TWINS | LEASED_TWINS | TIMED_TWINS
)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", TWINS)
def test_the_world_notices_the_twin_of_a_feed(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    twin = TWINS[name]
    for patch in twin.patches:
        patch(monkeypatch)
    check_noticed(f"feeds: {name}", twin.checkers, lambda seed: twin.world(seed, tmp_path))


def test_every_checker_of_feeds_has_a_twin_that_it_catches() -> None:
    checkers = {value for name, value in vars(violation).items() if name.startswith("FED_")}
    assert checkers == {c for twin in TWINS.values() for c in twin.checkers if c in checkers}
