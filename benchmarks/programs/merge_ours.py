"""One merge as a compaction job does it, in a process of its own.

`merge_ours STORE SHAPE [MIB [WORKERS [START]]]`. MIB: how much memory it may take for buffers; 0:
what it takes by default. WORKERS: processes. START: `warm`: helpers are there before the merge
begins, as after a task's first job; `cold`: they are started when it asks for them.
"""

from __future__ import annotations

import time
from pathlib import Path
from threading import Semaphore

from benchmarks.inputs import TABLE, bench_file, parts_in
from benchmarks.processes import run_measured
from benchmarks.shapes import SHAPES
from lakebed.backends.local.object_store import LocalObjectStore
from lakebed.backends.system.clock import SystemClock
from lakebed.bootstrap.merge_process import merge_helpers
from lakebed.bootstrap.object_locations import ObjectsLocation
from lakebed.model.paths import file_path
from lakebed.model.ranges import EVERYTHING
from lakebed.sorted_files.merging.helper_processes import MergeHelpers
from lakebed.sorted_files.parquet_files import MEMORY_BYTES, ParquetFiles

START_SECONDS_MAX = 60.0


def main(
    store: str, shape: str, mib: str = "0", workers: str = "1", start: str = "cold"
) -> float | None:
    """Merge; return the seconds that it waited for helpers before."""
    root, given = Path(store), SHAPES[shape]
    location = ObjectsLocation(str(root))
    helpers = merge_helpers(location, root / "spill" / "ranges", count=int(workers) - 1)
    files = ParquetFiles(
        LocalObjectStore(root, SystemClock()),
        spill_directory=root / "spill",
        memory_bytes=int(mib) << 20 or MEMORY_BYTES,
        helpers=helpers,
    )
    waited = None if helpers is None or start == "cold" else _started(helpers)
    parts = parts_in(root)
    name = bench_file(len(parts))
    written = files.merge_into_file(
        given.schema,
        parts,
        name=name,
        path=file_path(TABLE, name),
        key_range=EVERYTHING,
        processing=given.processing,
    )
    assert written is not None, "there are rows"
    if helpers is not None:
        helpers.close()
    return waited


def _started(helpers: MergeHelpers) -> float:
    """Wait until all helpers are there. Returns seconds."""
    begun, there = time.perf_counter(), Semaphore(0)
    helpers.each(lambda _: there.release())
    for _ in range(helpers.count):
        assert there.acquire(timeout=START_SECONDS_MAX), "helpers start"
    return time.perf_counter() - begun


if __name__ == "__main__":
    run_measured(main)
