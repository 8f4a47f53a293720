"""Spark reads a table, and its own reader the same files as Parquet: files of a million rows."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import lakebed
from benchmarks.figures import Figure, medians, quick
from benchmarks.inputs import kept
from benchmarks.shapes import FILES, Shape, shapes_named
from benchmarks.under_spark.spark_processes import cpu_seconds_and_answer, spark_home
from lakebed.sorted_files.format.file_notes import FILE_FORMAT

ROUNDS = 3
RATIO_MIN = 0.7
SHAPES = ("sleeper",)
PROGRAM = "benchmarks.under_spark.scans"
WAYS = ("read", "format", "parquet")


def run(
    file_rows: int | None = None, rounds: int = ROUNDS, shapes: Sequence[str] = ()
) -> list[Figure]:
    """Measure; file_rows: of each of ten files that come in, None: as each shape has them. Takes
    five minutes, and nothing where Spark is not installed."""
    if spark_home() is None:
        print("no Spark here: its scans are not measured", file=sys.stderr)
        return []
    figures = []
    for shape in shapes_named(shapes or SHAPES):
        figures += _figures(shape, file_rows or shape.file_rows, rounds)
    return figures


def _figures(shape: Shape, file_rows: int, rounds: int) -> list[Figure]:
    lake = _lake(shape, file_rows)
    rows = FILES * file_rows
    taken = []
    for _ in range(rounds):
        found = [cpu_seconds_and_answer(PROGRAM, way, str(lake), shape.name) for way in WAYS]
        assert len({answer for _, answer in found}) == 1, "each way gives the same rows"
        taken.append([rows / seconds for seconds, _ in found])
    read, loaded, parquet = medians(taken)
    name = "spark_scan" if shape.name == SHAPES[0] else f"spark_scan.{shape.name}"
    return [
        Figure(f"{name}.ratio_to_parquet", read / parquet, "", RATIO_MIN, better="higher"),
        Figure(f"{name}.format_ratio_to_parquet", loaded / parquet, "", better="higher"),
        Figure(f"{name}.rows_per_core_second", read, "rows/s/core"),
        Figure(f"{name}.parquet_rows_per_core_second", parquet, "rows/s/core"),
    ]


def _lake(shape: Shape, file_rows: int) -> Path:
    """Return a lake whose table has one file in each of eight leaves."""

    def fill(folder: Path) -> None:
        with lakebed.connect(folder / "lake") as lake:
            table = lake.create_table(
                "bench",
                shape.schema,
                split_points=shape.split_points[1::2],
                settings={"garbage_seconds_min": 0, "shared_file_rows_max": 0},
            )
            for seed in range(FILES):
                table.ingest(shape.rows(seed, file_rows))
            table.compact()
            lake.run(["bench"])

    return kept(f"{shape.name}-{FILES}x{file_rows}-lake-{FILE_FORMAT}", fill) / "lake"


if __name__ == "__main__":
    quick(__doc__, run)
