"""Leases, batches, usage and definitions of feeds of a small lake, and what is asked of them when
they are damaged.

Of leases and usage some may be lost: they are hints. What is left of them is what was written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from lakebed.lake import Lake
from lakebed.model.feeds.definitions import (
    KINDS,
    DefinitionEntry,
    DefinitionKind,
    FeedFailure,
    NamedDefinition,
    Put,
    WantedState,
)
from lakebed.model.feeds.endings import Ending, Endings, KnownIn
from lakebed.model.feeds.flushes import Flushes
from lakebed.model.names import MICROS_PER_SECOND, ConnectionId, Micros, TableId
from lakebed.ports.feed_registry import FeedRegistry
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
FAILURE = FeedFailure("corrupt", "a record that cannot be read", 1)
WISHES = Flushes(2, {"orders": 1, "returns": 2})
ENDING = Ending(
    id="c0", kind="connection", name="old", known_in=(KnownIn(ConnectionId("c0"), TABLE),)
)
Question = tuple[Callable[[], object], Sequence[object]]


def _entry(
    kind: DefinitionKind,
    name: str,
    *,
    wanted: WantedState = "stopped",
    failure: FeedFailure | None = None,
    changes: int = 1,
) -> DefinitionEntry:
    body = f"{name} of {kind}".encode() * 9
    definition = NamedDefinition(kind=kind, name=name, id=name, body=body, version=1)
    return DefinitionEntry(definition=definition, revision=changes, wanted=wanted, failure=failure)


DEFINED = [
    _entry("feed", "orders", wanted="running", changes=2),
    _entry("feed", "returns"),
    _entry("connection", "shop", failure=FAILURE, changes=2),
    _entry("policy", "patient"),
]


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
    _define(lake._app.feeds.definitions)


def _define(registry: FeedRegistry) -> None:
    registry.change([Put(entry.definition, 0) for entry in DEFINED])
    registry.want("feed", "orders", "running", 1)
    registry.note_failure("connection", "shop", FAILURE)
    for feed, number in WISHES.by_feed.items():
        registry.want_flush(feed, number - 1)
    registry.change_endings([ENDING], (), 0)


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
    yield from _questions_of_feeds(lake._app.feeds.definitions)


def _questions_of_feeds(registry: FeedRegistry) -> Iterator[Question]:
    yield registry.number, (1,)
    yield lambda: [entry for kind in KINDS for entry in registry.list(kind)], (DEFINED,)
    for entry in DEFINED:
        yield partial(registry.get, entry.definition.kind, entry.definition.name), (entry,)
    yield lambda: registry.get("policy", "none"), (None,)
    yield registry.flushes, (WISHES,)
    yield registry.endings, (Endings(1, (ENDING,)),)


def _unknown_usage(ledger: UsageLedger) -> list[Any]:
    found = ledger.read(TABLE, since=0, until=2 * HOUR)
    return [entry for entry in found if entry not in USAGE]


def _stores(lake: Lake) -> tuple[FileBatches, Leases, UsageLedger]:
    app = lake._app
    assert app.batches is not None
    assert app.paying.ledger is not None
    return app.batches, app.feeds.leases, app.paying.ledger
