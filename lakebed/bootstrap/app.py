"""The services of a lake in one process, over whatever backends they are given."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from lakebed.backends.local.process_folder import ProcessFolder
from lakebed.bootstrap.leftovers import Leftovers
from lakebed.bootstrap.machine import merge_processes, open_tables_max
from lakebed.bootstrap.merge_process import merge_helpers
from lakebed.bootstrap.object_places import ObjectsPlace
from lakebed.compaction.create_jobs import CreateCompactionJobs
from lakebed.compaction.run_job import GiveUpCompactionJob, RunCompactionJob
from lakebed.errors import InvalidError
from lakebed.garbage.collect import CollectGarbage
from lakebed.garbage.sweep import DeleteTableObjects, SweepObjects
from lakebed.ingest.ingest_rows import IngestRows
from lakebed.model.jobs import COMPACTION_QUEUE
from lakebed.model.names import TableId, TableName
from lakebed.ports.clock import Clock
from lakebed.ports.job_queue import JobQueues
from lakebed.ports.job_tracker import JobTracker
from lakebed.ports.object_store import ObjectStore
from lakebed.ports.source_files import SourceFiles
from lakebed.ports.table_registry import TableRegistry
from lakebed.ports.transaction_log import TransactionLogs
from lakebed.query.count_rows import CountRows
from lakebed.query.run_query import RunQuery
from lakebed.sorted_files.parquet_files import ParquetFiles
from lakebed.splitting.split_leaves import SplitLeaves
from lakebed.statestore.committer import Committer
from lakebed.statestore.format_gate import FormatGate
from lakebed.statestore.queued_commits import COMMIT_QUEUE, SendCommits
from lakebed.statestore.table_state.closable_state import StateLimits
from lakebed.statestore.warm_heads import WarmHeads
from lakebed.tables.catalog import TableCatalog
from lakebed.tasks.failed_work import FailedTables

if TYPE_CHECKING:
    from lakebed.inspection.dead_letters import DeadLetters
    from lakebed.inspection.fsck import Fsck
    from lakebed.inspection.job_history import JobHistory
    from lakebed.inspection.lake_status import LakeStatus
    from lakebed.inspection.redrive import Redrive
    from lakebed.inspection.repair import Repair

INSTANCE_SCHEME = "aws:"
"""Before the name of an instance, where a lake's place is asked for."""

MEMORY_BYTES_MIN, MEMORY_BYTES_MAX = 1 << 20, 1 << 40


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
        self.spill = ProcessFolder(spill)
        self.leftovers = Leftovers(self.objects, self.queues, spill)
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
            leftovers=self.leftovers.find,
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
            rebuild_cache=self._rebuild_cache,
            sweep_objects=self._sweep_objects,
            sweep_leftovers=self.leftovers.sweep,
            delete_objects=self._delete_objects.run,
            set_time_back=self._set_time_back,
            open_head=self.heads,
            problem_of_cache=self.heads.problem_of_cache,
            formats=self.formats,
            bring_back=self._bring_back,
        )

    def _rebuild_cache(self, table: TableId) -> int:
        self.leftovers.require_alone(self.spill)
        self.heads.rebuild(table)
        return 1

    @cached_property
    def status(self) -> LakeStatus:
        """Tells how tables are. Loaded when asked for."""
        from lakebed.inspection.lake_status import LakeStatus

        return LakeStatus(
            entries=self.catalog.entries,
            opened=self.catalog.opened,
            tracker=self.tracker,
            snapshots=self.heads.snapshots,
            queue_loads=self.dead_letters.loads,
        )

    @cached_property
    def job_history(self) -> JobHistory:
        """Finds reports of jobs. Loaded when asked for."""
        from lakebed.inspection.job_history import JobHistory

        return JobHistory(tracker=self.tracker, clock=self.clock)

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
        on_progress: Callable[[int], None],
    ) -> int:
        """Commit what is queued, as `Committer.run`, with states of tables of its own."""
        heads = self._heads(states_bytes_max)
        try:
            return self._committer(heads).run(
                wait_seconds=wait_seconds, should_stop=should_stop, on_progress=on_progress
            )
        finally:
            heads.close()

    def source_files(self) -> SourceFiles | None:
        """Return users' files by URL, as far as this lake's credentials may read them."""
        return None

    def url_files(self) -> SourceFiles:
        """Return users' files by URL, for who calls the library: in S3 and on the web."""
        from lakebed.bootstrap.url_files import UrlFiles

        return UrlFiles(self.spill.path, in_s3=self.source_files(), clock=self.clock, rng=self.rng)

    def _set_time_back(self, name: TableName) -> int:
        head = self.catalog.find(name).head
        head.follow()
        return int(head.tell_time(back=True))

    def _sweep_objects(self, name: TableName) -> int:
        return self.sweep.run(self.catalog.find(name))

    def close(self) -> None:
        """Close files; what was committed stays."""
        if self._merge_helpers is not None:
            self._merge_helpers.close()
        self.heads.close()
        self.spill.close()
