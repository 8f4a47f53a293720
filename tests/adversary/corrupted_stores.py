"""Leases, batches and usage of a small lake, and what is asked of them when they are damaged.

Of leases and usage some may be lost: they are hints. What is left of them is what was written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from lakebed.lake import Lake
from lakebed.model.names import MICROS_PER_SECOND, Micros, TableId
from lakebed.ports.file_batches import Batch, BatchHead, FileBatches, SubmittedFile
from lakebed.ports.leases import Leases, Owner, OwnerNumber, WorkerBeat, WorkerId
from lakebed.ports.paying.usage_ledger import LedgerEntry, UsageLedger

TABLE = TableId("f" * 32)
START = Micros(1_800_000_000 * MICROS_PER_SECOND)
LATER = Micros(2 * START)
FILES = tuple(SubmittedFile(f"s3://b/f{n}", n, f"v{n}", Micros(START + n)) for n in range(5))
BATCH = Batch(number=1, files=FILES[:2], target="ingest", planned=START, sends=1, sent=START)
HEAD = BatchHead(1, 1, 1)
OWNERS = [Owner("split", OwnerNumber(n), WorkerId(f"worker-{n}")) for n in (1, 2)]
BEATS = [WorkerBeat(WorkerId("worker-1"), n, b"lives") for n in (1, 2, 3)]
HOUR = 480_000
USAGE = [
    LedgerEntry(table=TABLE, hour=HOUR + n, kind="ingest", counts={"rows_in": n + 0.5})
    for n in range(3)
]
Question = tuple[Callable[[], object], Sequence[object]]


def fill(lake: Lake) -> None:
    """Write to each of the stores."""
    batches, leases, ledger = _stores(lake)
    batches.submit(TABLE, FILES)
    batches.plan(TABLE, BATCH, batches.head(TABLE))
    batches.take(TABLE, BATCH, until=LATER)
    batches.remove(TABLE, BATCH)
    batches.finish(TABLE, BATCH.number, sent=START)
    batches.end(TABLE, BATCH.number, free=())
    for owner in OWNERS:
        leases.claim(owner.name, owner.worker, 0)
    for beat in BEATS:
        leases.beat(beat.worker, beat.report)
    for entry in USAGE:
        ledger.add(entry)


def questions(lake: Lake) -> Iterator[Question]:
    """Yield what is asked, and the answers that are right. Asked again the same is right."""
    batches, leases, ledger = _stores(lake)
    yield lambda: batches.head(TABLE), (HEAD,)
    yield lambda: batches.pending(TABLE, files_max=9), (list(FILES[2:]),)
    yield lambda: batches.batches(TABLE), ([BATCH],)
    yield batches.tables, ([TABLE],)
    yield lambda: batches.submit(TABLE, FILES), ((0, len(FILES)),)
    yield lambda: leases.owner("split"), (None, *OWNERS)
    yield leases.owners, ([], *([owner] for owner in OWNERS))
    yield leases.workers, ([], *([beat] for beat in BEATS))
    yield lambda: _unknown_usage(ledger), ([],)


def _unknown_usage(ledger: UsageLedger) -> list[Any]:
    found = ledger.read(TABLE, since=0, until=2 * HOUR)
    return [entry for entry in found if entry not in USAGE]


def _stores(lake: Lake) -> tuple[FileBatches, Leases, UsageLedger]:
    app = lake._app
    assert app.batches is not None
    assert app.paying.ledger is not None
    return app.batches, app.feeds.leases, app.paying.ledger
