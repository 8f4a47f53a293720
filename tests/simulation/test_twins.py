"""The checkers are tested: each deliberately broken twin is caught, by the checker that it is for.

A world without such a catch says nothing about the rule.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.simulation import violation
from tests.simulation.batches.batch_twins import BATCH_TWINS
from tests.simulation.twins import TWINS
from tests.simulation.versions.version_twins import VERSION_TWINS
from tests.simulation.violation import check_noticed
from tests.simulation.world import World


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", TWINS)
def test_the_world_notices_the_twin(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record_property: object
) -> None:
    twin = TWINS[name]
    for patch in twin.patches:
        patch(monkeypatch)
    check_noticed(
        name,
        twin.checkers,
        lambda seed: World(seed, tmp_path, twin.parts, theme=twin.theme),
    )


def test_every_checker_has_a_twin_that_it_catches() -> None:
    constants = {name: value for name, value in vars(violation).items() if name.isupper()}
    checkers = {
        value
        for name, value in constants.items()
        if isinstance(value, str) and not name.startswith("FED_")
    }
    twins = (*TWINS.values(), *VERSION_TWINS.values(), *BATCH_TWINS.values())
    assert checkers == {checker for twin in twins for checker in twin.checkers}
