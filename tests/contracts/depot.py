"""A lake's stores of one kind, its services over them, and a clock that can be set wrong."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from lakebed.backends.memory import TupleFiles
from lakebed.backends.system.strategy_processes import StrategyProcesses
from lakebed.compaction.create_jobs import CreateCompactionJobs
from lakebed.compaction.dead_letters import GiveUpDeadJobs
from lakebed.compaction.run_job import GiveUpCompactionJob, RunCompactionJob
from lakebed.garbage.collect import CollectGarbage
from lakebed.garbage.sweep import DeleteTableObjects, SweepObjects
from lakebed.ingest.ingest_rows import IngestRows
from lakebed.model.jobs import COMPACTION_QUEUE, decode_message
from lakebed.model.names import MICROS_PER_SECOND, CommitId, JobId, Micros, digest_of
from lakebed.model.paths import files_prefix
from lakebed.model.schema import schema_of
from lakebed.ports.clock import Clock, Uptime
from lakebed.ports.job_queue import JobQueues
from lakebed.ports.job_tracker import JobTracker
from lakebed.ports.object_store import ObjectStore
from lakebed.ports.transaction_log import TransactionLogs
from lakebed.query.run_query import RunQuery
from lakebed.statestore.committer import Committer
from lakebed.statestore.open_table import OpenTable
from lakebed.statestore.queued_commits import COMMIT_QUEUE, SendCommits
from lakebed.statestore.warm_heads import WarmHeads
from lakebed.tables.catalog import TableCatalog
from lakebed.tasks.user_jobs import Ingested
from lakebed.tasks.worker import Visibility, Worker
from tests.simulation.rows import Request, Row, TupleRequest

SCHEMA = schema_of(row_keys={"key": "int64"}, values={"id": "int64"})
SETTINGS = {
    "compaction_strategy": "basic",
    "job_files_max": 2,
    "garbage_seconds_min": 0,
    "pending_seconds_max": 0,
    "redispatch_seconds": 0,
}
HIDDEN_SECONDS = 30.0


class SetClock:
    """A clock that may be set: `offset_seconds` from what is true."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.offset_seconds = 0

    def now(self) -> Micros:
        return Micros(self._clock.now() + self.offset_seconds * MICROS_PER_SECOND)

    def monotonic(self) -> float:
        return self._clock.monotonic()

    def uptime(self) -> Uptime:
        return self._clock.uptime()

    def sleep(self, seconds: float) -> None:
        self._clock.sleep(seconds)


class Stores(msgspec.Struct):
    """What is outside. advance: lets time pass, as the queues count it."""

    clock: Any
    logs: TransactionLogs
    objects: ObjectStore
    queues: JobQueues
    tracker: JobTracker
    registry: Any
    folder: Path

    def advance(self, seconds: float) -> None:
        self.clock.advance(seconds)


class Depot:
    """One process: heads of its own, and the services. queued: jobs send their commits."""

    def __init__(self, stores: Stores, name: str, *, queued: bool = False) -> None:
        self.stores = stores
        self.clock = SetClock(stores.clock)
        self.rng = random.Random(name)
        folder = stores.folder / name
        folder.mkdir()
        self.heads = WarmHeads(
            folder=folder,
            scratch=folder,
            logs=stores.logs,
            objects=stores.objects,
            clock=self.clock,
            rng=self.rng,
        )
        self.queue = stores.queues.open(COMPACTION_QUEUE)
        self.commit_queue = stores.queues.open(COMMIT_QUEUE)
        self.files = TupleFiles(stores.objects)
        told: dict[str, Any] = {"clock": self.clock, "tracker": stores.tracker}
        send = SendCommits(queue=self.commit_queue, objects=stores.objects, rng=self.rng)
        commits = send if queued else None
        self.committer = Committer(
            queue=self.commit_queue, objects=stores.objects, heads=self.heads, **told
        )
        self.ingest = IngestRows[Any](files=self.files, commits=commits, **told)
        self.create_jobs = CreateCompactionJobs(
            queue=self.queue, strategies=StrategyProcesses(), **told
        )
        self.run_job = RunCompactionJob[Any](files=self.files, commits=commits, **told)
        self.give_up = GiveUpCompactionJob(**told)
        self.give_up_dead_jobs = GiveUpDeadJobs(
            jobs=self.queue,
            commits=self.commit_queue,
            objects=stores.objects,
            find_table=lambda id_: self.table if id_ == self.table.id else None,
            give_up=self.give_up,
            tracker=stores.tracker,
        )
        self.collect = CollectGarbage(objects=stores.objects)
        self.sweep = SweepObjects(objects=stores.objects)
        self.query = RunQuery[Any](files=self.files)
        self.catalog = TableCatalog(
            registry=stores.registry,
            logs=stores.logs,
            open_head=self.heads,
            delete_objects=DeleteTableObjects(objects=stores.objects),
            rng=self.rng,
        )
        self.worker = Worker(
            queue=self.queue,
            handle=lambda m: self.run_job.run(self.table, decode_message(m.body).job),
            visibility=Visibility(hidden_seconds=HIDDEN_SECONDS),
        )

    @property
    def table(self) -> OpenTable:
        return self.catalog.find("t")

    def given_table(self, **settings: object) -> None:
        self.catalog.create("t", SCHEMA, settings=SETTINGS | settings)

    def when_taken(self, *jobs: str) -> list[Ingested]:
        """Ingest two rows under each id; an id says which rows."""
        return [self.ingest.run(self.table, request(job), JobId(job)) for job in jobs]

    def rows(self) -> list[Row]:
        return sorted(tuple(row) for batch in self.query.run(self.table) for row in batch)

    def jobs(self) -> list[JobId]:
        with self.table.head.reading() as state:
            return [job.id for job in state.jobs()]

    def number(self) -> int:
        with self.table.head.reading() as state:
            return state.head().number

    def events(self, job: JobId) -> list[str]:
        return [r.event for r in self.stores.tracker.history(self.table.id, job)]

    def stored(self) -> Sequence[str]:
        return list(self.stores.objects.list(files_prefix(self.table.id)))

    def close(self) -> None:
        self.heads.close()


def rows_of_jobs(*jobs: str) -> list[Row]:
    """The rows that these jobs bring."""
    found = [row for job in jobs for row in ((ord(job[-1]), 1), (ord(job[-1]) + 100, 2))]
    return sorted(found)


def request(job: str) -> TupleRequest:
    digest = digest_of(job.encode())
    batches = (tuple(rows_of_jobs(job)),)
    return TupleRequest(SCHEMA, Request(CommitId(job), digest, batches))
