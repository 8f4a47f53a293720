"""Whole lakes under faults, one seed after another.

`make simulate` tries 20,000 seeds, `LAKEBED_SEEDS=17,42 make simulate` these ones. How
many are tried, `LAKEBED_SIMULATION_SEEDS` says, and for one kind of worlds, for instance feeds,
`LAKEBED_SIMULATION_SEEDS_FEEDS`.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from lakebed.errors import LakebedError
from tests.simulation.tally import KINDS, Tally, gathered
from tests.simulation.world import World

CHOSEN = os.environ.get("LAKEBED_SEEDS", "")
SEEDS_PER_CASE = 50
FAILURES_SHOWN_MAX = 3
ENOUGH, ENOUGH_FOR_ALL = 500, 1_000
"""Worlds in which every fault happens: but for the rare ones, and those too."""
RARE = (" name claim", " name release")
"""How kinds of faults end that happen in one of some hundred worlds."""


def cases_of(seeds: int) -> list[list[int]]:
    """Return so many seeds, or those that were chosen, in cases for tests."""
    if CHOSEN:
        return [[int(seed)] for seed in CHOSEN.split(",")]
    return [
        list(range(at, min(at + SEEDS_PER_CASE, seeds))) for at in range(0, seeds, SEEDS_PER_CASE)
    ]


def seeds_of(kind: str) -> int:
    """Return how many worlds of a kind are tried."""
    of_all = os.environ.get("LAKEBED_SIMULATION_SEEDS", "2000")
    return int(os.environ.get(f"LAKEBED_SIMULATION_SEEDS_{kind}", of_all))


SEEDS = seeds_of("LAKES")
CASES = cases_of(SEEDS)


def replay(seed: int) -> str:
    """Return the command that shows a failure again."""
    return f"LAKEBED_SEEDS={seed} make simulate"


def story_of(
    seed: int, scratch: Path, tally: Tally, kind: Callable[[int, Path], World] = World
) -> str | None:
    """Return how a seed failed, with the command that replays it; None: all promises were kept."""
    world = kind(seed, scratch)
    try:
        world.run()
        world.end()
        world.check()
    except (AssertionError, LakebedError) as error:
        text = "".join(traceback.format_exception(error)[-6:])
        return f"seed {seed}: {error}\n  {replay(seed)}\n{text}"
    except BaseException as error:
        error.add_note(replay(seed))
        raise
    finally:
        tally.add(world.counts())
        world.close()
    return None


def fail_with(stories: Sequence[str], seeds: Sequence[int]) -> None:
    """Fail with the first stories, if there are any."""
    if stories:
        shown = "\n".join(stories[:FAILURES_SHOWN_MAX])
        pytest.fail(f"{len(stories)} of {len(seeds)} seeds failed\n{shown}", pytrace=False)


def kinds_due(worlds: int) -> list[str]:
    """Return the kinds of faults that happen in so many lakes."""
    if worlds < ENOUGH:
        return []
    return [kind for kind in KINDS if worlds >= ENOUGH_FOR_ALL or not kind.endswith(RARE)]


@pytest.mark.timeout(900)
@pytest.mark.parametrize("seeds", CASES, ids=lambda s: f"{s[0]}-{s[-1]}")
def test_every_promise_is_kept_under_faults(
    seeds: Sequence[int], tmp_path: Path, tally: Tally, shared_folder: Path
) -> None:
    own = Tally()
    stories = [story for seed in seeds if (story := story_of(seed, tmp_path, own))]
    tally.merge(own.worlds, own.counts)
    fail_with(stories, seeds)
    total = gathered(shared_folder / "lakes", str(seeds[0]), own, of=len(CASES))
    if total is not None:  # the last case to end looks at all of them
        assert not total.never(kinds_due(total.worlds)), "what never happens is not simulated"


def test_no_fault_is_missing_in_a_run_of_500_lakes_but_for_rare_ones() -> None:
    assert kinds_due(499) == []
    assert set(KINDS) - set(kinds_due(500)) == set(KINDS[-4:]), "kills at the names of tables"
    assert kinds_due(1_000) == list(KINDS)


def test_a_seed_replays_to_the_same_log(tmp_path: Path) -> None:
    logs = []
    for _ in range(2):
        world = World(3, tmp_path)
        world.run()
        world.end()
        logs.append({table: auditor.bodies for table, auditor in world.auditors.items()})
        world.close()
    assert logs[0] == logs[1]
