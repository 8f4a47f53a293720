"""The checkers of versions are tested: each twin is caught, by a checker that it is for."""

from __future__ import annotations

from pathlib import Path

import pytest

from lakebed.statestore import log_clock
from tests.simulation.tally import Tally
from tests.simulation.test_seeds import story_of
from tests.simulation.versions.version_twins import VERSION_TWINS
from tests.simulation.versions.versioned_world import VersionedWorld
from tests.simulation.violation import DELAY, check_noticed

SEED_OF_SET_BACK = 839


def test_the_world_notices_a_clock_that_takes_back_what_it_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # seed 839: a machine tells the log its time, its garbage is made, it is set back by a month and
    # tells that; a leap to the month before would make the garbage a month old
    assert story_of(SEED_OF_SET_BACK, tmp_path, Tally(), VersionedWorld) is None
    monkeypatch.setattr(log_clock, "_says_more", lambda *_: False)
    story = story_of(SEED_OF_SET_BACK, tmp_path, Tally(), VersionedWorld)
    assert story is not None
    assert DELAY in story


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", VERSION_TWINS)
def test_the_world_notices_the_twin_of_versions(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    twin = VERSION_TWINS[name]
    twin.patch(monkeypatch)
    check_noticed(
        f"versions: {name}",
        twin.checkers,
        lambda seed: twin.world(seed, tmp_path, is_harsh=True),
    )
