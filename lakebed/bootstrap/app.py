"""The services of a lake in one process, over whatever backends they are given."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from lakebed.backends.local.process_folder import (
    ProcessFolder,
    dead_in,
    others_alive,
    remove_dead,
)
from lakebed.bootstrap.machine import merge_processes, open_tables_max
from lakebed.bootstrap.merge_process import merge_helpers
from lakebed.bootstrap.object_places import ObjectsPlace
from lakebed.compaction.create_jobs import CreateCompactionJobs
from lakebed.compaction.run_job import GiveUpCompactionJob, RunCompactionJob
from lakebed.errors import ConflictError, InvalidError, LakebedError, did_you_mean
from lakebed.garbage.collect import CollectGarbage
from lakebed.garbage.sweep import DeleteTableObjects, SweepObjects
from lakebed.ingest.ingest_rows import IngestRows
from lakebed.model.jobs import COMPACTION_QUEUE, decode_message
from lakebed.model.names import MICROS_PER_SECOND, Micros, TableId, TableName, job_id
from lakebed.ports.clock import Clock
from lakebed.ports.job_queue import JobQueues, Received
from lakebed.ports.job_tracker import JOB_EVENTS, JobReport, JobTracker
from lakebed.ports.object_store import ObjectStore
from lakebed.ports.source_files import SourceFiles
from lakebed.ports.table_registry import TableRegistry
from lakebed.ports.transaction_log import TransactionLogs
from lakebed.query.count_rows import CountRows
from lakebed.query.run_query import RunQuery
from lakebed.sorted_files.parquet_files import ParquetFiles
from lakebed.splitting.split_leaves import SplitLeaves
from lakebed.statestore.closable_state import StateLimits
from lakebed.statestore.committer import Committer
from lakebed.statestore.format_gate import FormatGate
from lakebed.statestore.open_table import OpenTable
from lakebed.statestore.queued_commits import COMMIT_QUEUE, SendCommits
from lakebed.statestore.warm_heads import WarmHeads
from lakebed.tables.catalog import TableCatalog
from lakebed.tasks.failed_work import FailedTables, FailedWork, explain

if TYPE_CHECKING:
    from lakebed.inspection.dead_letters import DeadLetters
    from lakebed.inspection.findings import Finding
    from lakebed.inspection.fsck import Fsck
    from lakebed.inspection.redrive import Redrive
    from lakebed.inspection.repair import Repair
    from lakebed.inspection.status import TableStatus

INSTANCE_SCHEME = "aws:"
"""Before the name of an instance, where a lake's place is asked for."""

MEMORY_BYTES_MIN, MEMORY_BYTES_MAX = 1 << 20, 1 << 40

UNFINISHED_SECONDS_MAX = 48 * 3_600.0
"""How long an object may take to be finished: as long as a job may be pending."""


class Memory(NamedTuple):
    """What one process may use. cache_bytes: of what is kept of files for lookups. merge_bytes: of
    a compaction's buffers. None: the usual."""

    cache_bytes: int | None = None
    merge_bytes: int | None = None

    def check(self) -> None:
        """Raise InvalidError for nothing to keep rows in, or more than machines have."""
        for name, size in self._asdict().items():
            allowed = type(size) is int and MEMORY_BYTES_MIN <= size <= MEMORY_BYTES_MAX
            if size is not None and not allowed:
                hint = f"give {MEMORY_BYTES_MIN} to {MEMORY_BYTES_MAX} bytes, or leave it out"
                raise InvalidError(f"{name} is not a size of memory", got=size, hint=hint)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stores:
    """Where a lake is kept. place: in words. clock: all processes of a lake use the same kind.

    for_processes: where other processes find the objects; None: only this one does. bring_back:
    takes the deletion of an object back, if its versions are kept; None: none are.
    """

    place: str
    clock: Clock
    rng: random.Random
    objects: ObjectStore
    logs: TransactionLogs
    registry: TableRegistry
    queues: JobQueues
    tracker: JobTracker
    for_processes: ObjectsPlace | None = None
    bring_back: Callable[[str], bool] | None = None


class App:
    """The services of a lake. Several processes may open one lake at once.

    states: a folder for states of tables, which processes may share. spill: a folder for rows on
    their way, in which each process makes one of its own.
    """

    def __init__(self, stores: Stores, *, states: Path, spill: Path, memory: Memory) -> None:
        self.place = stores.place
        self.clock, self.rng = stores.clock, stores.rng
        self.objects, self.logs = stores.objects, stores.logs
        self.registry, self.tracker = stores.registry, stores.tracker
        self.queues = stores.queues
        self.queue = stores.queues.open(COMPACTION_QUEUE)
        self.commit_queue = stores.queues.open(COMMIT_QUEUE)
        self._bring_back = stores.bring_back
        self._spill_root = spill
        self.spill = ProcessFolder(spill)
        self._states = states
        self.formats = FormatGate(self.registry, self.clock)
        self.heads = self._heads()
        self._merge_helpers = merge_helpers(
            stores.for_processes, self.spill.path / "ranges", count=merge_processes() - 1
        )
        self.files = ParquetFiles(
            self.objects,
            spill_directory=self.spill.path,
            cache_bytes=memory.cache_bytes,
            merge_bytes=memory.merge_bytes,
            helpers=self._merge_helpers,
        )
        self.failed_tables = FailedTables(self.clock)
        self._delete_objects = DeleteTableObjects(objects=self.objects)
        self.catalog = TableCatalog(
            registry=self.registry,
            logs=self.logs,
            open_head=self.heads,
            delete_objects=self._delete_objects,
            rng=self.rng,
        )
        self._make_services()

    def _make_services(self) -> None:
        files, clock, tracker = self.files, self.clock, self.tracker
        self.ingest = IngestRows[pa.RecordBatch](files=files, clock=clock, tracker=tracker)
        self.create_jobs = CreateCompactionJobs(queue=self.queue, tracker=tracker, clock=clock)
        self.run_job = RunCompactionJob[pa.RecordBatch](files=files, clock=clock, tracker=tracker)
        self.queued_ingest = IngestRows[pa.RecordBatch](
            files=files,
            clock=clock,
            tracker=tracker,
            commits=SendCommits(queue=self.commit_queue, objects=self.objects, rng=self.rng),
        )
        self.committer = self._committer(self.heads)
        self.give_up = GiveUpCompactionJob(clock=clock, tracker=tracker)
        self.split_leaves = SplitLeaves(files=files)
        self.collect = CollectGarbage(objects=self.objects)
        self.sweep = SweepObjects(objects=self.objects)
        self.query = RunQuery[pa.RecordBatch](files=files)
        self.count = CountRows[pa.RecordBatch](query=self.query, files=files)

    @cached_property
    def fsck(self) -> Fsck:
        """Holds the lake's parts against each other. Loaded when asked for: lookups begin
        without."""
        from lakebed.inspection.fsck import Fsck

        return Fsck(
            registry=self.registry,
            logs=self.logs,
            objects=self.objects,
            files=self.files,
            open_head=self.heads,
            snapshots=self.heads.snapshots,
            problem_of_cache=self.heads.problem_of_cache,
            clock=self.clock,
            leftovers=self.leftovers,
        )

    @cached_property
    def repair(self) -> Repair:
        """Mends what `fsck` finds. Loaded when asked for, too."""
        from lakebed.inspection.repair import Repair

        return Repair(
            registry=self.registry,
            logs=self.logs,
            objects=self.objects,
            snapshots=self.heads.snapshots,
            rebuild_cache=self.rebuild_cache,
            sweep_objects=self.sweep_objects,
            sweep_leftovers=self.sweep_leftovers,
            delete_objects=self._delete_objects.run,
            set_time_back=self._set_time_back,
            open_head=self.heads,
            problem_of_cache=self.heads.problem_of_cache,
            formats=self.formats,
            bring_back=self._bring_back,
        )

    @cached_property
    def dead_letters(self) -> DeadLetters:
        """Looks at what was given up. Loaded when asked for."""
        from lakebed.inspection.dead_letters import DeadLetters

        return DeadLetters(
            queues=self.queues, registry=self.registry, tracker=self.tracker, clock=self.clock
        )

    @cached_property
    def redrive(self) -> Redrive:
        """Sends it again. Loaded when asked for."""
        from lakebed.inspection.redrive import Redrive

        return Redrive(self.dead_letters, queues=self.queues, heads=self.heads, clock=self.clock)

    def _committer(self, heads: WarmHeads) -> Committer:
        return Committer(
            queue=self.commit_queue,
            objects=self.objects,
            heads=heads,
            tracker=self.tracker,
            clock=self.clock,
        )

    def _heads(self, bytes_max: int | None = None) -> WarmHeads:
        return WarmHeads(
            folder=self._states,
            scratch=self.spill.path,
            logs=self.logs,
            objects=self.objects,
            clock=self.clock,
            rng=self.rng,
            bytes_max=bytes_max,
            limits=StateLimits(open_tables_max()),
            formats=self.formats,
        )

    def commit_queued(
        self,
        *,
        states_bytes_max: int,
        wait_seconds: float,
        should_stop: Callable[[], bool],
        told: Callable[[int], None],
    ) -> int:
        """Commit what is queued until the queue gives nothing, or told to stop.

        Returns how many commits were answered. told: is called with how many, after each batch.
        """
        heads, answered = self._heads(states_bytes_max), 0
        committer = self._committer(heads)
        try:
            while not should_stop():
                done = committer.step(wait_seconds=wait_seconds)
                if done is None:
                    break
                answered += done
                told(answered)
        finally:
            heads.close()
        return answered

    def compact_from(self, message: Received) -> None:
        """Run the compaction job of a message. One of a dropped table went with it."""
        told = decode_message(message.body)
        table = self.table_of(told.table)
        if table is not None:
            self.run_job.run(table, told.job)

    def table_of(self, id_: TableId) -> OpenTable | None:
        """Return the table of an id; None: it was dropped."""
        for entry in self.catalog.list():
            if entry.id == id_:
                return self.catalog.opened(entry)
        return None

    def reports_of(
        self,
        table: TableId,
        *,
        job: str | None,
        events: Sequence[str],
        since_seconds: float | None,
        limit: int,
    ) -> list[JobReport]:
        """Return what was told of jobs, as `Table.jobs` does. Raises: InvalidError."""
        for event in events:
            if event not in JOB_EVENTS:
                hint = did_you_mean(event, JOB_EVENTS, what="event")
                raise InvalidError("no such event of a job", event=event, hint=hint)
        if job is not None:
            return self.tracker.history(table, job_id(job))[-limit:]
        wanted = [event for event in JOB_EVENTS if not events or event in events]
        ago = round((since_seconds or 0) * MICROS_PER_SECOND)
        since = Micros(0) if since_seconds is None else Micros(self.clock.now() - ago)
        return self.tracker.find(table, events=wanted, since=since, reports_max=limit)

    def source_files(self) -> SourceFiles | None:
        """Return users' files by URL, as far as this lake's credentials may read them."""
        return None

    def url_files(self) -> SourceFiles:
        """Return users' files by URL, for who calls the library: in S3 and on the web."""
        from lakebed.bootstrap.url_files import UrlFiles

        return UrlFiles(self.spill.path, in_s3=self.source_files(), clock=self.clock, rng=self.rng)

    def status(self, name: str | None) -> tuple[list[TableStatus], list[FailedWork]]:
        """Return what a table, None: each, looks like now, and of which that cannot be told.

        Raises:
            TableMissingError: there is no such table.
        """
        from lakebed.inspection.status import table_status

        found: list[TableStatus] = []
        failed, loads = list[FailedWork](), self._queue_loads()
        for entry in self.catalog.list() if name is None else [self.catalog.entry(name)]:
            try:
                status = table_status(
                    self.catalog.opened(entry),
                    tracker=self.tracker,
                    snapshots=self.heads.snapshots(entry.id),
                    loads=loads,
                    online=entry.online,
                )
            except LakebedError as error:
                explain(error, table=entry.name, id_=entry.id)
                failed.append(FailedWork(table=entry.name, work="status", error=error))
            else:
                found.append(status)
        return found, failed

    def _queue_loads(self) -> dict[str, tuple[int, int]]:
        """Return how many messages and dead letters each queue of the lake has. About."""
        return {name: self.queues.open(name).depth() for name in self.dead_letters.known(())}

    def leftovers(self) -> list[Finding]:
        """Return what dead processes left on this machine."""
        from lakebed.inspection.findings import finding

        spilled = dead_in(self._spill_root)
        return [finding("spill-left", name=path.name) for path in spilled]

    def sweep_leftovers(self) -> int:
        """Remove what dead processes left on this machine, however new: the dead hold no lock.

        What is unfinished elsewhere may be a living process's: only what is old goes.
        """
        unfinished = self.objects.abort_unfinished(older_than_seconds=UNFINISHED_SECONDS_MAX)
        return unfinished + remove_dead(self._spill_root)

    def rebuild_cache(self, table: TableId) -> int:
        """Make what is kept of a table's state on this machine anew. Returns 1.

        Raises:
            ConflictError: another process has the lake open; nothing was changed.
        """
        others = others_alive(self._spill_root, self.spill)
        if others:
            hint = "end it, then repair again"
            raise ConflictError("another process has the lake open", process=others[0], hint=hint)
        self.heads.rebuild(table)
        return 1

    def _set_time_back(self, name: TableName) -> int:
        head = self.catalog.find(name).head
        head.follow()
        return int(head.tell_time(back=True))

    def sweep_objects(self, name: TableName) -> int:
        """Sweep a table's objects now. Returns how many were deleted."""
        return self.sweep.run(self.catalog.find(name))

    def close(self) -> None:
        """Close files; what was committed stays."""
        if self._merge_helpers is not None:
            self._merge_helpers.close()
        self.heads.close()
        self.spill.close()
