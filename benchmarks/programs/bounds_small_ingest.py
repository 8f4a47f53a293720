"""One process connects to a new lake and ingests a few rows: `FOLDER ROWS`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pyarrow as pa

import lakebed
from benchmarks.processes import peak_mib


def main(folder: Path, count: int) -> None:
    rows = pa.table({"id": range(count), "name": [f"name {n}" for n in range(count)]})
    schema = lakebed.schema_of(row_keys={"id": "int64"}, values={"name": "string"})
    with lakebed.connect(folder) as lake:
        assert lake.create_table("bench", schema).ingest(rows).rows == count, "rows are missing"
    print(json.dumps({"peak_mib": peak_mib()}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
