"""One process takes rows into many tables and asks each of them: `FOLDER TABLES`."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import pyarrow as pa

import lakebed
from benchmarks.processes import peak_mib

ROWS = 10


def main(folder: Path, count: int) -> None:
    rows = pa.table({"id": [f"k{n}" for n in range(ROWS)], "value": list(range(ROWS))})
    schema = lakebed.schema_of(row_keys={"id": "string"}, values={"value": "int64"})
    descriptors = 0
    with lakebed.connect(folder) as lake:
        begun = time.process_time()
        for number in range(count):
            lake.create_table(f"t{number}", schema).ingest(rows)
            descriptors = max(descriptors, _descriptors())
        ingested = time.process_time()
        for number in range(count):
            found = lake.table(f"t{number}").query(keys=["k3"]).read_all()
            assert found.num_rows == 1, "a row was lost"
            descriptors = max(descriptors, _descriptors())
        queried = time.process_time()
    told = {
        "descriptors": descriptors,
        "peak_mib": peak_mib(),
        "ingest_cpu_ms": 1000 * (ingested - begun) / count,
        "query_cpu_ms": 1000 * (queried - ingested) / count,
    }
    print(json.dumps(told))


def _descriptors() -> int:
    """Return how many files this process has open."""
    folders = Path("/proc/self/fd"), Path("/dev/fd")
    return len(list(next(filter(Path.exists, folders)).iterdir())) - 1  # without the listing's own


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
