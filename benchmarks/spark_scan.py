"""Spark reads a table, and its own reader the same rows as Parquet: files of a million rows."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow.parquet as pq

import lakebed
from benchmarks import inputs
from benchmarks.figures import Figure, medians, quick
from benchmarks.inputs import kept, unsorted_files
from benchmarks.shapes import FILES, Shape, shapes_named
from benchmarks.under_spark.spark_processes import seconds, spark_home

ROUNDS = 3
RATIO_MIN = 0.7
SHAPES = ("sleeper",)
PROGRAM = "benchmarks.under_spark.scans"
WAYS = ("read", "format", "parquet")


def run(
    file_rows: int | None = None, rounds: int = ROUNDS, shapes: Sequence[str] = ()
) -> list[Figure]:
    """Measure; file_rows: of each file, None: as each shape has them. Takes five minutes, and
    nothing where Spark is not installed."""
    if spark_home() is None:
        print("no Spark here: its scans are not measured", file=sys.stderr)
        return []
    figures = []
    for shape in shapes_named(shapes or SHAPES):
        figures += _figures(shape, file_rows or shape.file_rows, rounds)
    return figures


def _figures(shape: Shape, file_rows: int, rounds: int) -> list[Figure]:
    lake, folder = _lake(shape, file_rows), _sorted(shape, file_rows)
    rows = FILES * file_rows
    taken = []
    for _ in range(rounds):
        taken.append([rows / seconds(PROGRAM, way, str(lake), str(folder)) for way in WAYS])
    read, loaded, parquet = medians(taken)
    name = "spark_scan" if shape.name == SHAPES[0] else f"spark_scan.{shape.name}"
    return [
        Figure(f"{name}.ratio_to_parquet", read / parquet, "", RATIO_MIN, better="higher"),
        Figure(f"{name}.format_ratio_to_parquet", loaded / parquet, "", better="higher"),
        Figure(f"{name}.rows_per_second", read, "rows/s"),
        Figure(f"{name}.parquet_rows_per_second", parquet, "rows/s"),
    ]
