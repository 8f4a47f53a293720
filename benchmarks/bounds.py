"""What must stay small, whatever comes: many tables in one process."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile

from benchmarks.figures import Figure, table
from benchmarks.processes import ROOT

TABLES = 2_000


def run(tables: int = TABLES) -> list[Figure]:
    """Measure. Takes four minutes."""
    return _many_tables(tables)


def _many_tables(count: int) -> list[Figure]:
    told = _told_by("benchmarks.bounds_tables", count)
    prefix = f"tables.{count}"
    return [
        Figure(f"{prefix}.descriptors", told["descriptors"], "", 500),
        Figure(f"{prefix}.peak_mib", told["peak_mib"], "MiB", 400),
        Figure(f"{prefix}.ingest_cpu_ms", told["ingest_cpu_ms"], "ms"),
        Figure(f"{prefix}.query_cpu_ms", told["query_cpu_ms"], "ms"),
    ]


def _told_by(module: str, *arguments: object) -> dict[str, float]:
    """Return what a process of its own prints about itself: JSON in its last line."""
    with tempfile.TemporaryDirectory(prefix="lakebed-bounds-") as folder:
        command = [sys.executable, "-m", module, folder, *map(str, arguments)]
        done = subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    told: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return told


if __name__ == "__main__":
    print(table(run(*map(int, sys.argv[1:]))))
