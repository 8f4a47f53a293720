"""Hostile records for all decoders: `python -m tests.adversary.hostile_records --count 1000000`.

Each process takes a share, so that one that dies is seen, with the seed that it died of.
"""

from __future__ import annotations

import argparse
import faulthandler
import resource
import subprocess
import sys
import time
from collections import Counter

from tests.adversary.hostile_records.forms import forms
from tests.adversary.hostile_records.rounds import ROUND_RECORDS, run_rounds

SHARE = 50_000
SHARE_SECONDS_MAX = 1_800
MEMORY_BYTES_MAX = 6 << 30
"""Of addresses: a record that becomes more than its bytes account for ends the share."""


def main() -> int:
    """Run all shares, or one. Returns 0: each record was what it must be."""
    given = argparse.ArgumentParser(description=__doc__)
    given.add_argument("--count", type=int, default=100_000)
    given.add_argument("--seed", type=int, default=1)
    given.add_argument("--form", choices=forms(), help="only this one")
    given.add_argument("--share", action="store_true", help="in this process")
    said = given.parse_args()
    if said.share:
        return _share(said.seed, said.count, said.form)
    begun, done, seed = time.monotonic(), 0, said.seed
    while done < said.count:
        count = min(SHARE, said.count - done)
        command = [sys.executable, "-m", "tests.adversary.hostile_records", "--share"]
        command += ["--count", str(count), "--seed", str(seed)]
        command += ["--form", said.form] if said.form else []
        ended = subprocess.run(command, timeout=SHARE_SECONDS_MAX, check=False).returncode
        if ended:
            _say(f"ended with {ended}: {' '.join(command[1:])}")
            return 1
        done += count
        seed += count // ROUND_RECORDS + 1
        _say(f"{done:,} records in {time.monotonic() - begun:.0f} s")
    return 0


def _share(seed: int, count: int, form: str | None) -> int:
    faulthandler.enable()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES_MAX, MEMORY_BYTES_MAX))
    faulthandler.dump_traceback_later(SHARE_SECONDS_MAX - 60, exit=True)
    chosen = [forms()[form]] if form else list(forms().values())
    for name, seen in run_rounds(chosen, seed=seed, count=count).items():
        verdicts = Counter(seen.verdicts).most_common()
        _say(f"{name}: {seen.records:,}, unsure {seen.unsure:,}: {dict(verdicts)}")
    return 0


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
