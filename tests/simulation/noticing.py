"""Each twin is noticed by a checker that it is for, in some world.

A test begins with the world that noticed it last, and looks for another if that one does no more.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Collection
from pathlib import Path

import pytest

SEEDS_MAX = 600
SEEDS = Path(__file__).parent / "noticed_at.json"
"""The seed of the world that noticed each twin. `make golden` writes it."""


def check_noticed(
    name: str, checkers: Collection[str], outcome: Callable[[int], str | None]
) -> None:
    """Fail if no world notices a twin.

    name: of the twin, among all of the simulation. checkers: one of these must notice it.
    outcome: returns the checker that the world of a seed fails, or the name of another error; None:
        it fails none.
    """
    known = json.loads(SEEDS.read_text(encoding="utf-8")).get(name, 0)
    others = set()
    for seed in (known, *range(SEEDS_MAX)):
        checker = outcome(seed)
        if checker in checkers:
            if seed != known and os.environ.get("LAKEBED_GOLDEN") == "rewrite":
                _write(name, seed)
            return
        others.add(checker)
    pytest.fail(f"{name}: {set(checkers)} did not notice in {SEEDS_MAX} seeds; seen: {others}")


def _write(name: str, seed: int) -> None:
    """Other processes that test write at the same time."""
    with SEEDS.open("r+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        known = json.load(file) | {name: seed}
        file.seek(0)
        file.truncate()
        file.write(json.dumps(known, indent=2, sort_keys=True) + "\n")
