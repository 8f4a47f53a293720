"""Bulk import beside Spark's own way: unsorted Parquet files become sorted ones in 16 leaves."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks import inputs
from benchmarks.figures import Figure, medians, quick
from benchmarks.inputs import unsorted_files
from benchmarks.peers.checking import Check, contents
from benchmarks.shapes import FILES, Shape, shapes_named
from benchmarks.under_spark.spark_processes import cpu_seconds, spark_home

ROUNDS = 3
SHAPES = ("sleeper", "sys")
RATIO_MIN = {"sys": 2.0}
RATE = "rows/s/core"
OURS, PEER = "benchmarks.under_spark.ours", "benchmarks.under_spark.native"


def run(
    file_rows: int | None = None, rounds: int = ROUNDS, shapes: Sequence[str] = ()
) -> list[Figure]:
    """Measure; file_rows: of each file, None: as each shape has them. Takes five minutes, and
    nothing where Spark is not installed."""
    if spark_home() is None:
        print("no Spark here: bulk import is not measured", file=sys.stderr)
        return []
    figures = []
    for shape in shapes_named(shapes or SHAPES):
        figures += _figures(shape, file_rows or shape.file_rows, rounds)
    return figures


def _figures(shape: Shape, file_rows: int, rounds: int) -> list[Figure]:
    folder = unsorted_files(shape, FILES, file_rows)
    wanted = contents(sorted(folder.iterdir()))
    check = Check(wanted, shape.keys)
    taken: list[list[float]] = []
    for _ in range(rounds):
        taken.append([])
        for module, given in ((OURS, shape.name), (PEER, shape.for_peers())):
            with TemporaryDirectory(prefix="scratch-", dir=inputs.CACHE) as target:
                used = cpu_seconds(module, target, str(folder), given)
                check(sorted(Path(target).rglob("*.parquet")), module)
            taken[-1].append(wanted.rows / used)
    ours, peer = medians(taken)
    name = f"bulk_import.{shape.name}"
    return [
        Figure(f"{name}.rows_per_core_second", ours, RATE),
        Figure(
            f"{name}.ratio_to_native", ours / peer, "", RATIO_MIN.get(shape.name), better="higher"
        ),
        Figure(f"{name}.native_rows_per_core_second", peer, RATE),
    ]


if __name__ == "__main__":
    quick(__doc__, run)
