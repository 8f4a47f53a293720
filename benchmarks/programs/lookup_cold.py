"""One lookup of a process that begins with nothing: `FOLDER URL KEY`."""

from __future__ import annotations

import sys
from pathlib import Path

import lakebed
from benchmarks.servers.served_objects import ServedObjects
from benchmarks.servers.served_tables import objects_of
from benchmarks.servers.slow_s3 import SlowS3

if __name__ == "__main__":
    folder = Path(sys.argv[1])
    objects = ServedObjects(objects_of(folder), SlowS3(sys.argv[2]))
    with lakebed.connect(folder / "directory", objects=objects) as lake:
        assert lake.table("bench").query(keys=[sys.argv[3]]).read_all().num_rows, "no row"
