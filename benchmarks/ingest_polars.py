"""The peer: Polars sorts the same files into one file a leaf: `ingest_polars TARGET FOLDER SHAPE`.

One query: scan, sort, and a sink that is partitioned by leaf. The leaf is looked up in the split
points by a binary search over whole columns, the fastest of four ways to say it.
SHAPE: what `Shape.for_peers` says.
"""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl

from benchmarks.processes import run_measured

ROW_GROUP = 100_000


def main(target: str, folder: str, shape: str) -> None:
    plan = json.loads(shape)
    points = pl.Series(plan["split_points"])

    def leaf(keys: pl.Series) -> pl.Series:
        return points.search_sorted(keys, side="right").cast(pl.UInt8)

    rows = pl.scan_parquet(Path(folder) / "*.parquet").sort(plan["keys"])
    leaves = pl.col(plan["keys"][0]).map_batches(leaf, return_dtype=pl.UInt8, is_elementwise=True)
    rows.with_columns(leaf=leaves).sink_parquet(
        pl.PartitionBy(target, key="leaf", include_key=False, approximate_bytes_per_file=None),
        compression="zstd",
        compression_level=1,
        row_group_size=ROW_GROUP,
        mkdir=True,
    )


if __name__ == "__main__":
    run_measured(main)
