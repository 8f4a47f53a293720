"""What a TB costs on AWS: amounts counted by the planner and formulas, times the file of prices."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

import lakebed
from benchmarks.figures import Figure
from benchmarks.shapes import shapes_named
from lakebed.costs.idle_costs import idle_parts, working_metrics
from lakebed.costs.measured import packaged_measures
from lakebed.costs.prices import packaged_prices
from lakebed.costs.work_costs import (
    GB,
    WorkScenario,
    bulk_imported_tb,
    compacted_tb,
    ingested_tb,
    replaced_files,
)

ROWS = 2_000_000
DOLLARS_MAX = 7
ROW_BYTES = "cost.row_bytes"
"""The one figure of this benchmark that is measured."""


def run() -> list[Figure]:
    """Measure the bytes of a row, and reckon with them; takes half a minute."""
    row_bytes = float(f"{_row_bytes():.4g}")  # as it is kept: what is reckoned here can be again
    return [Figure(ROW_BYTES, row_bytes, "bytes"), *reckoned(row_bytes)]


def reckoned(row_bytes: float) -> list[Figure]:
    """Return what follows from the bytes of a row, from counts and from prices."""
    measured = msgspec.structs.replace(packaged_measures(), row_bytes=row_bytes)
    prices = packaged_prices()
    usual, small = WorkScenario(), WorkScenario(job_bytes=GB)
    parts = {
        "ingest": ingested_tb(measured, usual).dollars(prices),
        "compaction": compacted_tb(measured, usual).dollars(prices),
        "replaced_files": replaced_files(measured, usual).dollars(prices),
    }
    of_small = (ingested_tb, compacted_tb, replaced_files)
    return [
        Figure("cost.per_tb_dollars", sum(parts.values()), "$", DOLLARS_MAX),
        *(Figure(f"cost.per_tb_dollars.{part}", cost, "$") for part, cost in parts.items()),
        Figure(
            "cost.per_tb_dollars_of_1_gb_jobs",
            sum(part(measured, small).dollars(prices) for part in of_small),
            "$",
        ),
        Figure("cost.bulk_import_per_tb_dollars", bulk_imported_tb(measured).dollars(prices), "$"),
        Figure(
            "cost.idle_month_dollars", sum(a.dollars(prices) for a in idle_parts().values()), "$"
        ),
        Figure("cost.metrics_month_dollars", working_metrics(of_feeds=False).dollars(prices), "$"),
    ]


def _row_bytes() -> float:
    """Return the size of one leaf's file, a row."""
    (shape,) = shapes_named(["sleeper"])
    with TemporaryDirectory(prefix="lakebed-costs-") as folder, lakebed.connect(folder) as lake:
        table = lake.create_table("rows", shape.schema)
        table.ingest(shape.rows(1, ROWS))
        files = Path(folder).rglob("*.parquet")
        return sum(file.stat().st_size for file in files) / ROWS
