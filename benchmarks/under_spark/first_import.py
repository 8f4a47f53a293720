"""A first import of skewed keys, in a process of its own: `... LAKE FOLDER one-leaf|split ROWS`."""

from __future__ import annotations

import sys

from benchmarks.under_spark.ours import import_files
from benchmarks.under_spark.presplit import SKEWED, even_points
from lakebed.lake import connect


def main(lake: str, folder: str, way: str, leaf_rows_max: str) -> None:
    with connect(lake) as opened:
        opened.create_table(
            "bench",
            SKEWED.schema,
            split_points=even_points() if way == "split" else (),
            settings={"shared_file_rows_max": 0, "leaf_rows_max": int(leaf_rows_max)},
        )
    import_files(lake, folder)


if __name__ == "__main__":
    main(*sys.argv[1:])
