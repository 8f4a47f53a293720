"""An instance in memory: its stores, what a user does, and the queues with who works on them."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from lakebed.backends.aws.job_queues import _text_of, received_record  # as through SQS
from lakebed.backends.memory import (
    MemoryFeedRegistry,
    MemoryFileBatches,
    MemoryJobQueues,
    MemoryJobTracker,
    MemoryLeases,
    MemoryObjectStore,
    MemorySecrets,
    MemoryTableMarks,
    MemoryTableRegistry,
    MemoryTransactionLogs,
    VirtualClock,
)
from lakebed.bootstrap.assemble import Stores, assemble
from lakebed.bootstrap.feeds.stores import FeedStores
from lakebed.bootstrap.functions import committer, dead_letters
from lakebed.bootstrap.functions.batches.batching import BatchTables
from lakebed.bootstrap.functions.scheduled_work import JobStores, app_over
from lakebed.bootstrap.functions.table_stores import TableStores, table_stores
from lakebed.bootstrap.memory import Memory
from lakebed.config.job_queues import WORK_HIDDEN_SECONDS
from lakebed.ingest.sources import ArrowSource
from lakebed.model.feeds.held_bytes import HeldBytes
from lakebed.model.feeds.time_share import TimeShare
from lakebed.model.jobs import (
    BATCHING,
    BULK_IMPORT_QUEUE,
    COMPACTION_QUEUE,
    INGEST_QUEUE,
    decode_table_message,
)
from lakebed.model.names import JobId
from lakebed.model.schema import schema_of
from lakebed.ports.job_queue import JobQueue, Received
from lakebed.schedules.send_ticks import SendBatchTicks, SendTicks
from lakebed.sorted_files.format.arrow_schema import arrow_schema
from lakebed.statestore.marked_logs import MarkedTransactionLogs
from lakebed.statestore.queued_commits import COMMIT_QUEUE
from lakebed.tasks.failed_work import FailedTables
from lambdas.batching.handle import make_batches
from lambdas.batching.trigger import send_ticks as send_batch_ticks
from lambdas.committer.commit import commit
from lambdas.dead_letters.give_up import give_up
from lambdas.scheduled_work.handle import work_on_table
from lambdas.scheduled_work.trigger import send_ticks
from lambdas.shape import Handler, batch_handler, queue_handler, scheduled_handler

SCHEMA = schema_of(row_keys={"key": "string"}, values={"value": "int64"})
HIDDEN_SECONDS = float(WORK_HIDDEN_SECONDS)


@dataclass
class Run:
    """What Lambda tells a run of itself. left: milliseconds, as often as it is asked."""

    aws_request_id: str = "run-1"
    function_name: str = "lakebed-dev-tests"
    left: list[int] = field(default_factory=lambda: [120_000])

    def get_remaining_time_in_millis(self) -> int:
        return self.left.pop(0) if len(self.left) > 1 else self.left[0]


def record(body: str, message_group: str, id_: str, receives: int = 1) -> dict[str, Any]:
    """Return a message as SQS hands it to a function."""
    return {
        "messageId": id_,
        "receiptHandle": id_,
        "body": body,
        "attributes": {"MessageGroupId": message_group, "ApproximateReceiveCount": str(receives)},
        "messageAttributes": {},
        "eventSource": "aws:sqs",
        "eventSourceARN": "arn:aws:sqs:us-east-1:000000000000:lakebed-dev-tests.fifo",
    }


class MemoryInstance:
    """All of an instance, in memory; `lake` is what its users have."""

    def __init__(self, folder: Path) -> None:
        self.clock = VirtualClock()
        self.rng = random.Random(7)
        self.objects = MemoryObjectStore(self.clock)
        self.logs = MemoryTransactionLogs(self.clock)
        self.registry = MemoryTableRegistry()
        self.marks = MemoryTableMarks()
        self.queues = MemoryJobQueues(self.clock)
        self.tracker = MemoryJobTracker()
        self.batches = MemoryFileBatches()
        self.folder = folder
        (folder / "states").mkdir()
        stores = Stores(
            location="memory",
            clock=self.clock,
            rng=self.rng,
            objects=self.objects,
            logs=MarkedTransactionLogs(self.logs, self.marks),
            registry=self.registry,
            queues=self.queues,
            tracker=self.tracker,
            batches=self.batches,
            feeds=FeedStores(
                MemoryLeases(),
                MemoryFeedRegistry(),
                MemorySecrets({}),
                HeldBytes(),
                TimeShare(),
                FailedTables(self.clock),
                {},
            ),
        )
        self.lake = assemble(stores, states=folder / "states", spill=folder, memory=Memory())
        self.stores = self.function_stores("function")

    def function_stores(self, name: str) -> TableStores:
        """Return the stores of another process."""
        return table_stores(
            clock=self.clock,
            rng=self.rng,
            objects=self.objects,
            logs=self.logs,
            registry=self.registry,
            marks=self.marks,
            folder=self.folder / name,
        )

    def given_table(self, name: str, **settings: object) -> None:
        self.lake.catalog.create(name, SCHEMA, settings=settings)

    def given_rows(self, name: str, rows: int, *, job: str, queued: bool = False) -> None:
        keys = [f"{job}-{n:06d}" for n in range(rows)]
        table = pa.table({"key": keys, "value": range(rows)}, schema=arrow_schema(SCHEMA))
        source = ArrowSource(table, SCHEMA)
        ingest = self.lake.queued_ingest if queued else self.lake.ingest
        ingest.run(self.lake.catalog.find(name), source, JobId(job))

    def leaves(self, name: str) -> int:
        with self.lake.catalog.find(name).head.reading() as state:
            return len(state.leaf_figures())

    def rows(self, name: str) -> int:
        with self.lake.catalog.find(name).head.reading() as state:
            return sum(leaf.rows for leaf in state.leaf_figures())

    def number(self, name: str) -> int:
        with self.lake.catalog.find(name).head.reading() as state:
            return state.head().number

    def ticks(self, work: str) -> SendTicks:
        return SendTicks(
            work,
            registry=self.registry,
            marks=self.marks,
            queue=self.queues.open(work),
            clock=self.clock,
        )

    def trigger_of(self, work: str) -> Handler:
        """Return the function that sends what is due of one kind of scheduled work."""
        if work == BATCHING:
            queue = self.queues.open(BATCHING)
            ticks = SendBatchTicks(batches=self.batches, queue=queue)
            return scheduled_handler(once(ticks), send_batch_ticks)
        return scheduled_handler(once(self.ticks(work)), send_ticks)

    def handler_of(self, work: str) -> Handler:
        """Return the function that does one kind of scheduled work."""
        if work == BATCHING:
            return queue_handler(once(self._batch_tables()), decode_table_message, make_batches)
        app = app_over(work, self.stores, open_job_stores=self.job_stores)
        return queue_handler(once(app), decode_table_message, work_on_table)

    def _batch_tables(self) -> BatchTables:
        return BatchTables(
            self.stores,
            batches=self.batches,
            queues={
                "ingest": self.queues.open(INGEST_QUEUE),
                "bulk-import": self.queues.open(BULK_IMPORT_QUEUE),
            },
            tracker=self.tracker,
        )

    def committer_app(self) -> committer.App:
        return committer.App(
            self.stores,
            queue=self.queues.open(COMMIT_QUEUE),
            tracker=self.tracker,
            received=received_record,
        )

    def committer(self) -> Handler:
        """Return the function that commits what is queued."""
        return batch_handler(once(self.committer_app()), commit)

    def dead_letters_function(self) -> Handler:
        """Return the function that frees what dead compaction jobs held."""
        jobs, commits = self.queues.open(COMPACTION_QUEUE), self.queues.open(COMMIT_QUEUE)
        app = dead_letters.app_over(self.stores, jobs=jobs, commits=commits, tracker=self.tracker)
        return scheduled_handler(once(app), give_up)

    def job_stores(self) -> JobStores:
        return JobStores(self.queues.open(COMPACTION_QUEUE), self.tracker)

    def when_worked(self, work: str, handler: Handler, *, times: int = 1) -> list[str]:
        """Hand to a function what waits, a batch at a time. Returns ids of what it gave back."""
        return worked(self.queues.open(work), handler, times=times)

    def when_killed(self, work: str, handler: Handler) -> None:
        """Hand a batch to a function that dies when its work is done: nothing is deleted."""
        found = self.queues.open(work).receive(messages_max=10, hidden_seconds=HIDDEN_SECONDS)
        assert found, f"no message of {work} waits"
        handler({"Records": records_of(found)}, Run())


def worked(queue: JobQueue, handler: Handler, *, times: int = 1) -> list[str]:
    """Do what an event source does until a queue shows nothing more. times: of each batch."""
    given_back = []
    while messages := queue.receive(messages_max=10, hidden_seconds=HIDDEN_SECONDS):
        for _ in range(times):
            answer = handler({"Records": records_of(messages)}, Run())
        assert answer is not None
        failed = {failure["itemIdentifier"] for failure in answer["batchItemFailures"]}
        queue.delete(*(m.receipt for m in messages if m.receipt not in failed))
        given_back += [_text_of(m.body) for m in messages if m.receipt in failed]
    return given_back


def records_of(messages: Sequence[Received]) -> list[dict[str, Any]]:
    """Return messages as SQS hands them to a function."""
    return [record(_text_of(m.body), m.message_group, m.receipt, m.receives) for m in messages]


def once(app: Any) -> Callable[[], Any]:  # noqa: ANN401 - an app of any kind
    """Return what builds an app that is there."""
    return lambda: app
