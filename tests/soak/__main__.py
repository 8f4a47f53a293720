"""python -m tests.soak --hours 1 [--seed N] [--keep]: what `make soak` runs."""

import argparse
import random
import secrets
import tempfile
from pathlib import Path

from benchmarks.figure_pages.page import keep
from benchmarks.figures import Figure
from tests.e2e.worker import say
from tests.soak.lines import table
from tests.soak.soak import Pace, Soak


def main() -> None:
    parser = argparse.ArgumentParser(prog="tests.soak", description=__doc__)
    parser.add_argument("--hours", type=float, default=1.0)
    parser.add_argument("--look-minutes", type=float, default=15.0)
    parser.add_argument("--seed", type=int, default=secrets.randbits(32))
    parser.add_argument("--keep", action="store_true", help="keep the figures")
    given = parser.parse_args()
    say("seed", given.seed)
    with tempfile.TemporaryDirectory(prefix="lakebed-soak-") as folder:
        pace = Pace(look_seconds=given.look_minutes * 60)
        soak = Soak(Path(folder), random.Random(given.seed), pace)
        soak.run(given.hours * 3_600, say)
    say(table(list(soak.lines.values())))
    say("\n".join(f"  {name:<24} {count:>10,}" for name, count in sorted(soak.counts.items())))
    if given.keep:
        keep(
            [
                Figure("soak.hours", given.hours, "h"),
                Figure("soak.real_compactions", soak.counts["compactions"], "jobs"),
                Figure("soak.real_lost", 0, "rows", 0),
            ]
        )


if __name__ == "__main__":
    main()
