"""What a checker says when the world is not as it should be, and that one notices each twin."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Protocol

import pytest

from lakebed.errors import LakebedError


class Violation(AssertionError):  # noqa: N818 - what a checker says, not an error of its own
    """A promise was broken. checker: the name of the promise."""

    def __init__(self, checker: str, story: str) -> None:
        super().__init__(f"[{checker}] {story}")
        self.checker = checker


class CheckedWorld(Protocol):
    """A world that one runs to its end, and looks at."""

    def run(self) -> None: ...
    def end(self) -> None: ...
    def check(self) -> None: ...
    def close(self) -> None: ...


def outcome_of(world: CheckedWorld) -> str | None:
    """Return the checker that a world fails, or the name of another error; None: it fails none."""
    try:
        world.run()
        world.end()
        world.check()
    except Violation as error:
        return error.checker
    except (AssertionError, LakebedError) as error:
        return type(error).__name__
    finally:
        world.close()
    return None


SEEDS_MAX = 600
SEEDS = Path(__file__).parent / "noticed_at.json"
"""The seed of the world that noticed each twin, if it is not 0. `make golden` writes it."""


def check_noticed(
    name: str, checkers: Collection[str], world_of: Callable[[int], CheckedWorld]
) -> None:
    """Fail if no world notices a twin. The first that is tried is the one that noticed it last.

    name: of the twin, among all of the simulation. checkers: one of these must notice it.
    world_of: makes the world of a seed, with the twin in it.
    """
    known = json.loads(SEEDS.read_text(encoding="utf-8")).get(name, 0)
    others = set()
    for seed in (known, *range(SEEDS_MAX)):
        checker = outcome_of(world_of(seed))
        if checker in checkers:
            if seed != known and os.environ.get("LAKEBED_GOLDEN") == "rewrite":
                _write(name, seed)
            return
        others.add(checker)
    pytest.fail(f"{name}: {set(checkers)} did not notice in {SEEDS_MAX} seeds; seen: {others}")


def _write(name: str, seed: int) -> None:
    """Write down which seed noticed a twin; other processes that test may write theirs now."""
    with SEEDS.open("r+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        known = json.load(file) | {name: seed}
        file.seek(0)
        file.truncate()
        file.write(json.dumps(known, indent=2, sort_keys=True) + "\n")


ROWS = "no row lost or doubled"
LANDED_ONCE = "a commit lands once"
TRUTH = "answers are true"
NO_GAP = "numbers have no gap and are used once"
TIME = "log time never runs backwards or ahead"
CLAIMS = "no file claimed twice, no claim lost"
TILES = "leaves tile the key space"
EXISTS = "every referenced file exists"
DELAY = "garbage waits its time"
READERS = "readers agree or are refused"
REPLAY = "snapshot plus tail equals full replay"
NAMES = "names are used once"
LEAKS = "what nothing refers to is deleted"
STARTS = "a fresh process finds a state to begin with"
BEHIND_GAP = "nothing is committed behind a gap"
SHOWN = "nothing is shown that the log does not hold"
ENDS = "work ends when nothing fails"
KEPT = "a version that is kept stays whole"
FOLLOWED = "a follower gets each change"
BATCHED = "a submitted file is taken in once, or refused"
FED_ROWS = "each record is in the table or in its quarantine, once"
FED_TILES = "ranges of a source split tile it"
FED_ONCE = "a value is let in once within its time, and its first record is a row"
FED_OWNERS = "no older owner moves a position"
FED_VERSIONS = "no row of an older definition lands behind a newer one"
FED_WATERMARK = "the watermark is what event times and log time allow"
FED_SEALED = "a sealed window is complete as of its number"
FED_LEDGER = "the ledger is the source's own record"
FED_ANSWERS = "a sender hears what is so"
FED_ROUTE = "a record is in the table of its value alone"
