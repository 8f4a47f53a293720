"""One process asks a table of many leaves, of a few rows each, for every row: `FOLDER LEAVES`."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import pyarrow as pa

import lakebed
from benchmarks.processes import peak_mib

ROWS = 3
"""Of a leaf."""


def make(folder: Path, count: int) -> None:
    """Make the lake: one ingest, whose rows share a file."""
    ids = range(ROWS * count)
    rows = pa.table({"id": ids, "name": [f"name {n}" for n in ids]})
    schema = lakebed.schema_of(row_keys={"id": "int64"}, values={"name": "string"})
    with lakebed.connect(folder) as lake:
        table = lake.create_table("bench", schema, split_points=list(ids[ROWS::ROWS]))
        table.ingest(rows)


def main(folder: Path, count: int) -> None:
    with lakebed.connect(folder) as lake:
        table = lake.table("bench")
        cpu, begun = time.process_time(), time.perf_counter()
        kept = list(table.query())
        told = {
            "seconds": time.perf_counter() - begun,
            "cpu_seconds": time.process_time() - cpu,
            "peak_mib": peak_mib(),
        }
    assert sum(map(len, kept)) == ROWS * count, "rows are missing"
    print(json.dumps(told))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
