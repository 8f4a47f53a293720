"""python -m tests.adversary --minutes 60 [--seed N] [--round SEED] [--keep DIR]: what `make
adversary` runs."""

import argparse
import secrets
from pathlib import Path

from tests.adversary.rounds import ENOUGH_ROUNDS, never, run_round, run_rounds, table
from tests.e2e.worker import say

ROUND_SECONDS = 60.0


def main() -> None:
    parser = argparse.ArgumentParser(prog="tests.adversary", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=secrets.randbits(32))
    parser.add_argument("--round", type=int, help="run only the round of this seed")
    parser.add_argument("--keep", type=Path, help="a folder for lakes of rounds that fail")
    given = parser.parse_args()
    say("seed", given.seed)
    if given.round is not None:
        counts = run_round(given.round, ROUND_SECONDS, keep=given.keep)
    else:
        counts = run_rounds(
            given.seed,
            given.minutes,
            round_seconds=ROUND_SECONDS,
            on_progress=say,
            keep=given.keep,
        )
    say(table(counts))
    if counts["rounds"] >= ENOUGH_ROUNDS and (missing := never(counts)):
        parser.exit(1, f"never happened: {', '.join(missing)}\n")


if __name__ == "__main__":
    main()
