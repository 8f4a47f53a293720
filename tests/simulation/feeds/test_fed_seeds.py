"""Feeds under faults, one seed after another: `make simulate SEEDS=20000` tries more."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from pathlib import Path

import pytest

from lakebed.errors import LakebedError
from tests.simulation.feeds.fed_world import FedWorld
from tests.simulation.tally import Tally
from tests.simulation.test_seeds import CASES, FAILURES_SHOWN_MAX, replay
from tests.simulation.world import counted


def story_of(seed: int, scratch: Path, tally: Tally) -> str | None:
    """Return how a seed failed, with the command that replays it; None: all promises were kept."""
    world = FedWorld(seed, scratch)
    try:
        world.run()
        world.end()
        world.check()
    except (AssertionError, LakebedError) as error:
        text = "".join(traceback.format_exception(error)[-6:])
        return f"seed {seed} of feeds: {error}\n  {replay(seed)}\n{text}"
    except BaseException as error:
        error.add_note(replay(seed))
        raise
    finally:
        tally.add(counted(world))
        world.close()
    return None


@pytest.mark.timeout(900)
@pytest.mark.parametrize("seeds", CASES, ids=lambda s: f"{s[0]}-{s[-1]}")
def test_every_promise_of_feeds_is_kept_under_faults(
    seeds: Sequence[int], tmp_path: Path, tally: Tally
) -> None:
    stories = [story for seed in seeds if (story := story_of(seed, tmp_path, tally))]
    if stories:
        shown = "\n".join(stories[:FAILURES_SHOWN_MAX])
        pytest.fail(f"{len(stories)} of {len(seeds)} seeds failed\n{shown}", pytrace=False)
