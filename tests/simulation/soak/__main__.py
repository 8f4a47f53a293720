"""python -m tests.simulation.soak --days 5 [--compactions N] [--seed N] [--keep]: what `make soak
DAYS=5` runs, in two processes beside each other."""

import argparse
import math
import secrets
import tempfile
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from benchmarks.figure_pages.page import keep
from benchmarks.figures import Figure
from tests.e2e.worker import say
from tests.simulation.soak.long_days import TICKS_A_DAY, LongDays
from tests.simulation.soak.steady_tables import PROCESSING
from tests.soak.lines import table

PROCESSES = 2
MORE = 1.05
"""Some jobs of a tick are done in the next one."""


def soak(seed: int, *, days: float, leaves: int) -> int:
    """Let days pass for one lake, and tell about them. Returns how many compactions it had."""
    with tempfile.TemporaryDirectory(prefix="lakebed-days-") as folder:
        world = LongDays(seed, Path(folder), leaves=leaves)
        try:
            world.run(days, lambda text: say(f"seed {seed}, {text}"))
            world.rest()
        finally:
            counts = "\n".join(f"  {name:<24} {n:>10,}" for name, n in sorted(world.counts.items()))
            say(f"seed {seed}\n{table(list(world.lines.values()))}\n{counts}")
            world.close()
        return world.compactions


def main() -> None:
    parser = argparse.ArgumentParser(prog="tests.simulation.soak", description=__doc__)
    parser.add_argument("--days", type=float, default=5.0)
    parser.add_argument("--compactions", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=secrets.randbits(31))
    parser.add_argument("--keep", action="store_true", help="keep the figures")
    given = parser.parse_args()
    a_leaf = given.days * TICKS_A_DAY * len(PROCESSING) * PROCESSES
    leaves = math.ceil(MORE * given.compactions / a_leaf)
    with ProcessPoolExecutor(PROCESSES) as pool:
        work = partial(soak, days=given.days, leaves=leaves)
        compactions = sum(pool.map(work, range(given.seed, given.seed + PROCESSES)))
    say(f"{given.days:g} days, {compactions:,} compactions, nothing lost, doubled or left")
    if given.keep:
        keep(
            [
                Figure("soak.days", given.days, "d"),
                Figure("soak.compactions", compactions, "jobs", 1_000_000, "higher"),
                Figure("soak.lost", 0, "rows", 0),
            ]
        )


if __name__ == "__main__":
    main()
