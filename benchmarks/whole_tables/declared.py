"""Tables that files declare: how long it takes to see that 200 of them are as they should be."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import lakebed
from benchmarks.figures import Figure

TABLES, FIELDS, ROUNDS = 200, 20, 5
SECONDS_MAX = 5
_AGAIN = """
import json, sys, time
import lakebed
begun = time.perf_counter()
with lakebed.connect(sys.argv[1], create=False) as lake:
    done = lake.apply_tables(sys.argv[2])
assert not done.steps, done.steps
assert len(done.unchanged) == int(sys.argv[3]), done.unchanged
print(json.dumps(time.perf_counter() - begun))
"""


def run() -> list[Figure]:
    """Measure, each round in a process of its own; takes a minute, most of it to make tables."""
    with TemporaryDirectory(prefix="lakebed-declared-") as folder:
        lake, files = Path(folder) / "lake", Path(folder) / "tables"
        files.mkdir()
        for number in range(TABLES):
            (files / f"t{number:03}.toml").write_text(_table(number))
        begun = time.perf_counter()
        with lakebed.connect(lake) as opened:
            opened.apply_tables(files)
        made = time.perf_counter() - begun
        spent = [_again(lake, files) for _ in range(ROUNDS)]
    name = f"declared.{TABLES}_tables"
    return [
        Figure(f"{name}_seconds", statistics.median(spent), "s", SECONDS_MAX),
        Figure(f"{name}_made_seconds", made, "s"),
    ]


def _again(lake: Path, files: Path) -> float:
    command = [sys.executable, "-c", _AGAIN, str(lake), str(files), str(TABLES)]
    answer = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(json.loads(answer.stdout))


def _table(number: int) -> str:
    values = "\n".join(f'v{n} = "float64?"' for n in range(FIELDS))
    return (
        f'name = "t{number:03}"\n[row_keys]\nid = "string"\n[values]\nday = "date32?"\n{values}\n'
        f"[settings]\nleaf_rows_max = {1_000_000 + number}\n"
        '[processing.age_off]\nfield = "day"\nseconds = 7776000\n'
    )


if __name__ == "__main__":
    from benchmarks.figures import table

    print(table(run()))
