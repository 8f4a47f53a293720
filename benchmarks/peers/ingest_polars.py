"""The peer: Polars sorts the same files into one file a leaf: `ingest_polars TARGET FOLDER SHAPE`.

One query: scan, sort, and a sink that is partitioned by leaf. Leaves are told by a tree of
comparisons, the fastest of four ways to say it.
SHAPE: what `Shape.for_peers` says.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from benchmarks.processes import run_measured

ROW_GROUP = 100_000


def main(target: str, folder: str, shape: str) -> None:
    plan = json.loads(shape)
    rows = pl.scan_parquet(Path(folder) / "*.parquet").sort(plan["keys"])
    leaves = _leaf(plan["keys"][0], plan["split_points"], 0)
    rows.with_columns(leaf=leaves).sink_parquet(
        pl.PartitionBy(target, key="leaf", include_key=False, approximate_bytes_per_file=None),
        compression="zstd",
        compression_level=1,
        row_group_size=ROW_GROUP,
        mkdir=True,
    )


def _leaf(key: str, points: Sequence[Any], first: int) -> pl.Expr:
    """Return the number of a row's leaf. first: of the leaf before all these points."""
    if not points:
        return pl.lit(first, dtype=pl.UInt8)
    middle = len(points) // 2
    below = _leaf(key, points[:middle], first)
    above = _leaf(key, points[middle + 1 :], first + middle + 1)
    return pl.when(pl.col(key) < points[middle]).then(below).otherwise(above)


if __name__ == "__main__":
    run_measured(main)
