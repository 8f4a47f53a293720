"""One merge as a compaction job does it, in a process of its own: `merge_ours STORE`."""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.processes import IMPORTS_ONLY, tell_peak
from benchmarks.shapes import FILES, SLEEPER, TABLE, bench_file, parts_in
from lakebed.backends.local.object_store import LocalObjectStore
from lakebed.backends.system.clock import SystemClock
from lakebed.model.paths import file_path
from lakebed.model.ranges import EVERYTHING
from lakebed.sorted_files.parquet_files import ParquetFiles


def output(store: Path) -> Path:
    """Return the file that is written."""
    return store / "objects" / file_path(TABLE, bench_file(FILES))


def main(store: Path) -> None:
    files = ParquetFiles(LocalObjectStore(store, SystemClock()), spill_directory=store / "spill")
    name = bench_file(FILES)
    merged = files.merge(SLEEPER, parts_in(store))
    written = files.write(
        SLEEPER, merged, name=name, path=file_path(TABLE, name), regions=[EVERYTHING]
    )
    assert written is not None, "there are rows"


if __name__ == "__main__":
    if IMPORTS_ONLY not in sys.argv:
        main(Path(sys.argv[1]))
    tell_peak()
