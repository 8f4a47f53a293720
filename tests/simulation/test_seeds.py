"""Whole lakes under faults, one seed after another.

`make simulate SEEDS=20000` tries more seeds, `LAKEBED_SEEDS=17,42 make simulate` these ones.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.simulation.tally import Tally
from tests.simulation.world import World, counted

SEEDS = int(os.environ.get("LAKEBED_SIMULATION_SEEDS", "2000"))
CHOSEN = os.environ.get("LAKEBED_SEEDS", "")
SEEDS_PER_CASE = 50
FAILURES_SHOWN_MAX = 3


def cases() -> list[list[int]]:
    if CHOSEN:
        return [[int(seed)] for seed in CHOSEN.split(",")]
    return [
        list(range(at, min(at + SEEDS_PER_CASE, SEEDS))) for at in range(0, SEEDS, SEEDS_PER_CASE)
    ]


def story_of(seed: int, scratch: Path, tally: Tally) -> str | None:
    """Return how a seed failed, with the command that replays it; None: all promises were kept."""
    world = World(seed, scratch)
    try:
        world.run()
        world.end()
        world.check()
    except AssertionError as error:
        text = "".join(traceback.format_exception(error)[-6:])
        return f"seed {seed}: {error}\n  LAKEBED_SEEDS={seed} make simulate\n{text}"
    finally:
        tally.add(counted(world))
        world.close()
    return None


@pytest.mark.timeout(600)
@pytest.mark.parametrize("seeds", cases(), ids=lambda s: f"{s[0]}-{s[-1]}")
def test_every_promise_is_kept_under_faults(
    seeds: Sequence[int], tmp_path: Path, tally: Tally
) -> None:
    stories = [story for seed in seeds if (story := story_of(seed, tmp_path, tally))]
    if stories:
        shown = "\n".join(stories[:FAILURES_SHOWN_MAX])
        pytest.fail(f"{len(stories)} of {len(seeds)} seeds failed\n{shown}", pytrace=False)
