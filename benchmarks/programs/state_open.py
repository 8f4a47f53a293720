"""Open a table of a million files from its snapshot and answer: a process of its own.

Prints JSON: seconds to the first answer, milliseconds to read one leaf (median), peak memory,
milliseconds to count all rows (median).
"""

from __future__ import annotations

import json
import random
import resource
import statistics
import sys
import time
from pathlib import Path

BEGUN = time.perf_counter()  # before imports of ours: they are part of opening

from lakebed.backends.local.object_store import LocalObjectStore  # noqa: E402 - it counts
from lakebed.backends.local.transaction_logs import SqliteTransactionLogs  # noqa: E402 - it counts
from lakebed.backends.system.clock import SystemClock  # noqa: E402 - it counts
from lakebed.model.names import PartitionId, TableId  # noqa: E402 - it counts
from lakebed.statestore.head import TableHead  # noqa: E402 - it counts
from lakebed.statestore.snapshots import Snapshots  # noqa: E402 - it counts
from lakebed.statestore.table_state.layout import open_cache  # noqa: E402 - it counts
from lakebed.statestore.table_state.state import TableState  # noqa: E402 - it counts

COUNTS = 25


def main(root: Path) -> None:
    rng = random.Random(7)
    clock = SystemClock()
    table = TableId("t")
    snapshots = Snapshots(table, LocalObjectStore(root / "objects", clock), scratch=root)
    state = TableState(open_cache(root / "cache.sqlite", begin=snapshots.begin_cache))
    log = SqliteTransactionLogs(root / "logs", clock).open(table)
    head = TableHead(log, state, clock=clock, rng=rng, snapshots=snapshots)
    leaves = json.loads((root / "leaves.json").read_text())
    with head.reading() as current:
        assert current.references(PartitionId(leaves[len(leaves) // 2]))
    opened = time.perf_counter() - BEGUN
    spans = []
    for _ in range(500):
        leaf = PartitionId(rng.choice(leaves))
        begun = time.perf_counter()
        with state.reading():
            found = state.references(leaf)
        spans.append(time.perf_counter() - begun)
        assert found
    median = statistics.median(spans) * 1000
    found = {"open_seconds": opened, "partition_ms": median, "peak_mib": peak_mib()}
    print(json.dumps(found | {"count_ms": count_ms(head, root)}))


def count_ms(head: TableHead, root: Path) -> float:
    """Return how long it takes to count all rows, as `Table.count` does, in the median."""
    from lakebed.model.names import TableName  # noqa: PLC0415 - what is loaded here is not measured
    from lakebed.query.count_rows import CountRows  # noqa: PLC0415 - the same
    from lakebed.query.run_query import RunQuery  # noqa: PLC0415 - the same
    from lakebed.sorted_files.parquet_files import ParquetFiles  # noqa: PLC0415 - the same
    from lakebed.statestore.open_table import OpenTable  # noqa: PLC0415 - the same

    table = OpenTable(id_=TableId("t"), name=TableName("t"), head=head, rng=random.Random(8))
    objects = LocalObjectStore(root / "objects", SystemClock())
    files = ParquetFiles(objects, spill_directory=root)
    counting = CountRows(query=RunQuery(files=files), files=files)
    spans = []
    for _ in range(COUNTS):
        begun = time.perf_counter()
        rows = counting.all_rows(table)
        spans.append(time.perf_counter() - begun)
        assert rows, "the made-up files have rows"
    return statistics.median(spans) * 1000


def peak_mib() -> float:
    """Return the most memory that this program held. `getrusage` would count its parent's too."""
    status = Path("/proc/self/status")
    if status.exists():
        (line,) = [x for x in status.read_text().splitlines() if x.startswith("VmHWM:")]
        return int(line.split()[1]) / 1024
    unit = 1 << 20 if sys.platform == "darwin" else 1 << 10  # macOS tells bytes
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


if __name__ == "__main__":
    main(Path(sys.argv[1]))
