"""The first compaction of a task, in a process that sees the folder of its image and cannot write
there: whatever has to be compiled or imported first counts."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

import lakebed
from benchmarks.figures import Figure, medians, table
from benchmarks.programs import first_compaction
from tests.servers.image_folder import build

ROWS = 1_000_000
"""Of two files: as few as are merged by kernels."""
ROUNDS = 5
CPU_SECONDS_MAX = 2.0
PROGRAM = Path(first_compaction.__file__)


def run(rows: int = ROWS, rounds: int = ROUNDS) -> list[Figure]:
    """Measure. Takes two minutes, most of them for the image's folder."""
    with tempfile.TemporaryDirectory(prefix="lakebed-image-") as scratch:
        environment = build("compaction", Path(scratch) / "image")
        taken = []
        for number in range(rounds):
            lake = Path(scratch) / f"lake-{number}"
            make_lake(lake, rows)
            taken.append([first(lake, environment)["cpu_seconds"]])
    (seconds,) = medians(taken)
    return [Figure("image.first_compaction_cpu_seconds", seconds, "s", CPU_SECONDS_MAX)]


def make_lake(folder: Path, rows: int) -> None:
    """Make a lake with one table of two files."""
    schema = lakebed.schema_of(row_keys={"id": "int64"}, values={"name": "string"})
    with lakebed.connect(folder) as lake:
        bench = lake.create_table(first_compaction.TABLE, schema)
        for first_id in range(2):
            ids = range(first_id, rows, 2)
            bench.ingest(pa.table({"id": ids, "name": [f"name {n % 1000}" for n in ids]}))


def first(
    lake: Path, environment: dict[str, str], *, started_by: Sequence[str] = (), **more: str
) -> dict[str, float]:
    """Return what a process tells of its first compaction. It has one processor, as a task has.

    started_by: a command that starts the process, as another user.
    """
    done = subprocess.run(
        [*started_by, sys.executable, "-P", str(PROGRAM), str(lake)],
        env={**environment, "HOME": "/nonexistent", "LAKEBED_MERGE_PROCESSES": "1", **more},
        cwd=lake,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    told: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return told


if __name__ == "__main__":
    print(table(run(*map(int, sys.argv[1:]))))
