"""Rounds of a world: for so many seconds something happens to it; then everything is looked at."""

import random
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from tests.adversary.disk import small_disk
from tests.adversary.world import World

STORY_LINES = 40
FAULTS = ("kill", "stop", "power cut", "cache removed", "clock lies", "damage", "check")
ENOUGH_ROUNDS = 20
"""After so many rounds each fault has happened, or it is not tried at all."""


def run_round(seed: int, seconds: float, *, keep: Path | None = None) -> Counter[str]:
    """Run one round. Returns what was done and met, in counts. keep: a folder, which gets a copy of
    the lake if the round fails; None: it goes.

    Whatever it raises is a finding, with a note of the seed and what was done before: rows lost or
    doubled, a wrong answer, damage, an error that callers are not told to expect.
    """
    with tempfile.TemporaryDirectory(prefix="lakebed-outside-") as outside, small_disk() as disk:
        world = World(disk, Path(outside), random.Random(seed))
        try:
            world.start_all()
            for process in world.processes.values():
                process.wait_ready()
            ends = time.monotonic() + seconds
            while time.monotonic() < ends:
                world.step()
                if world.complaints():
                    raise AssertionError(world.complaints())
            world.settle()
        except Exception as error:
            story = "\n".join(world.story[-STORY_LINES:])
            error.add_note(f"round of seed {seed}, what was done last:\n{story}")
            if keep is not None:
                world.kill_all()
                kept = keep / f"{seed}-{time.time_ns()}"
                shutil.copytree(world.lake_path, kept)
                error.add_note(f"the lake: {kept}")
            raise
        finally:
            world.kill_all()
        return world.counts + told(world)


def told(world: World) -> Counter[str]:
    """Return what the processes said, in counts."""
    counts: Counter[str] = Counter()
    for process in world.all_processes():
        words = [line.split() for line in process.lines]
        counts["processes"] += 1
        counts["jobs"] += sum(w[0] == "ack" for w in words)
        counts["rows"] += sum(int(w[2]) for w in words if w[0] == "ack")
        for word in ("ran", "read", "altered", "backed-up", "expired"):
            counts[word] += sum(w[0] == word for w in words)
        for said in (w for w in words if w[0] == "again"):
            counts[f"again: {said[1]}"] += 1
    return counts


def run_rounds(
    seed: int,
    minutes: float,
    *,
    round_seconds: float,
    on_progress: Callable[[str], None],
    keep: Path | None = None,
) -> Counter[str]:
    """Run rounds until the time is up. Returns all counts together. keep: as for `run_round`."""
    rng = random.Random(seed)
    total: Counter[str] = Counter()
    ends = time.monotonic() + minutes * 60
    while time.monotonic() < ends:
        one = rng.getrandbits(32)
        on_progress(f"round {total['rounds'] + 1}, seed {one}")
        total += run_round(one, round_seconds, keep=keep)
        total["rounds"] += 1
    return total


def never(counts: Counter[str]) -> list[str]:
    """Return the faults that did not happen once, of those that need nothing of the machine."""
    return [fault for fault in FAULTS if not counts[fault]]


def table(counts: Counter[str]) -> str:
    """Return counts as lines."""
    return "\n".join(f"  {name:<28} {counts[name]:>10,}" for name in sorted(counts))
