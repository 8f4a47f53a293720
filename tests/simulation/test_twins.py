"""The checkers are tested: each deliberately broken twin is caught, by the checker that it is for.

A world without such a catch says nothing about the rule.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.simulation import violation
from tests.simulation.batches.batch_twins import BATCH_TWINS
from tests.simulation.twins import TWINS, Twin
from tests.simulation.versions.version_twins import VERSION_TWINS
from tests.simulation.violation import Violation
from tests.simulation.world import World

SEEDS_MAX = 400


def caught(twin: Twin, seed: int, scratch: Path) -> str | None:
    """Return the checker that a world with the twin fails, or None."""
    world = World(seed, scratch, twin.parts, theme=twin.theme)
    try:
        world.run()
        world.end()
        world.check()
    except Violation as error:
        return error.checker
    finally:
        world.close()
    return None


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", TWINS)
def test_the_world_notices_the_twin(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record_property: object
) -> None:
    twin = TWINS[name]
    for patch in twin.patches:
        patch(monkeypatch)
    others = set()
    for seed in range(SEEDS_MAX):
        checker = caught(twin, seed, tmp_path)
        if checker in twin.checkers:
            return
        others.add(checker)
    pytest.fail(f"{name}: {twin.checkers} did not notice in {SEEDS_MAX} seeds; seen: {others}")


def test_every_checker_has_a_twin_that_it_catches() -> None:
    names = [name for name in vars(violation) if name.isupper() and not name.startswith("FED_")]
    checkers = {getattr(violation, name) for name in names}
    twins = (*TWINS.values(), *VERSION_TWINS.values(), *BATCH_TWINS.values())
    assert checkers == {checker for twin in twins for checker in twin.checkers}
