"""10,000 damages planted in files of a lake of every kind: behind how many an answer was wrong."""

from __future__ import annotations

import json
import subprocess
import sys

from benchmarks.figures import Figure

PLANTED = 10_000
SEED = 1


def run() -> list[Figure]:
    """Plant them, in a process of its own; some twenty minutes on one core."""
    command = [sys.executable, "-m", "tests.adversary.corruptions", "--json"]
    command += ["--count", str(PLANTED), "--seed", str(SEED)]
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True)
    told = json.loads(done.stdout)
    planted, silent = told["planted"], told["silent"]
    return [
        Figure("adversary.corruptions_planted", planted, "", PLANTED, "higher"),
        Figure("adversary.corruptions_planted.silent", silent, "", 0),
    ]
