"""One ingest as a user calls it, in a process of its own: `ingest_ours LAKE FOLDER SHAPE`."""

from __future__ import annotations

from benchmarks.processes import run_measured
from benchmarks.shapes import SHAPES
from lakebed.lake import connect


def main(lake: str, folder: str, shape: str) -> None:
    given = SHAPES[shape]
    with connect(lake) as opened:
        table = opened.create_table(
            "bench",
            given.schema,
            split_points=given.split_points,
            settings={
                "shared_file_rows_max": 0
            },  # a file of its own for each leaf, as the peer has
        )
        table.ingest(folder)


if __name__ == "__main__":
    run_measured(main)
