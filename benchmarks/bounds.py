"""What must stay small, whatever comes: many tables, many leaves of a table, a small ingest."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.figures import Figure, table
from benchmarks.processes import ROOT
from benchmarks.programs import bounds_leaves

TABLES, LEAVES, SMALL_ROWS = 2_000, 20_000, 1_000


def run(tables: int = TABLES, leaves: int = LEAVES) -> list[Figure]:
    """Measure. Takes four minutes."""
    return [_small_ingest(), *_many_leaves(leaves), *_many_tables(tables)]


def _small_ingest() -> Figure:
    with _lake() as folder:
        told = _told_by("benchmarks.programs.bounds_small_ingest", folder, SMALL_ROWS)
    return Figure("ingest.small.peak_mib", told["peak_mib"], "MiB", 120)


def _many_tables(count: int) -> list[Figure]:
    with _lake() as folder:
        told = _told_by("benchmarks.programs.bounds_tables", folder, count)
    prefix = f"tables.{count}"
    return [
        Figure(f"{prefix}.descriptors", told["descriptors"], "", 500),
        Figure(f"{prefix}.peak_mib", told["peak_mib"], "MiB", 400),
        Figure(f"{prefix}.ingest_cpu_ms", told["ingest_cpu_ms"], "ms"),
        Figure(f"{prefix}.query_cpu_ms", told["query_cpu_ms"], "ms"),
    ]


def _many_leaves(count: int) -> list[Figure]:
    with _lake() as folder:
        bounds_leaves.make(folder, count)
        told = _told_by("benchmarks.programs.bounds_leaves", folder, count)
    prefix = f"query.leaves_{count}"
    return [
        Figure(f"{prefix}.seconds", told["seconds"], "s", 5),
        Figure(f"{prefix}.cpu_seconds", told["cpu_seconds"], "s"),
        Figure(f"{prefix}.peak_mib", told["peak_mib"], "MiB", 400),
    ]


@contextmanager
def _lake() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="lakebed-bounds-") as folder:
        yield Path(folder) / "lake"


def _told_by(module: str, *arguments: object) -> dict[str, float]:
    """Return what a process of its own prints about itself: JSON in its last line."""
    command = [sys.executable, "-m", module, *map(str, arguments)]
    done = subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    told: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return told


if __name__ == "__main__":
    print(table(run(*map(int, sys.argv[1:]))))
