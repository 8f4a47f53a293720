"""A lake in a directory: every service in one process, over files and SQLite.

Its objects may lie elsewhere: in a bucket, or in a store that the caller gives.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

import pyarrow as pa

from lakebed.backends.local.job_queues import SqliteJobQueue, SqliteJobQueues
from lakebed.backends.local.job_tracker import SqliteJobTracker
from lakebed.backends.local.lake_directory import LakeDirectory, open_lake_directory
from lakebed.backends.local.object_store import LocalObjectStore
from lakebed.backends.local.process_folder import (
    ProcessFolder,
    dead_in,
    others_alive,
    remove_dead,
)
from lakebed.backends.local.table_registry import SqliteTableRegistry
from lakebed.backends.local.transaction_logs import SqliteTransactionLogs
from lakebed.backends.system.chance import system_random
from lakebed.backends.system.clock import SystemClock
from lakebed.bootstrap.object_places import GIVEN, objects_at, opened_objects, place_of
from lakebed.compaction.create_jobs import CreateCompactionJobs
from lakebed.compaction.run_job import GiveUpCompactionJob, RunCompactionJob
from lakebed.errors import ConflictError, InvalidError
from lakebed.garbage.collect import CollectGarbage
from lakebed.garbage.sweep import DeleteTableObjects, SweepObjects
from lakebed.ingest.ingest_rows import IngestRows
from lakebed.inspection.findings import Finding, finding
from lakebed.inspection.fsck import Fsck
from lakebed.inspection.repair import Repair
from lakebed.inspection.status import TableStatus, table_status
from lakebed.model.jobs import COMPACTION_QUEUE
from lakebed.model.names import TableId, TableName
from lakebed.ports.clock import Clock
from lakebed.ports.object_store import ObjectStore
from lakebed.query.run_query import RunQuery
from lakebed.sorted_files.parquet_files import ParquetFiles
from lakebed.splitting.split_leaves import SplitLeaves
from lakebed.statestore.warm_heads import WarmHeads
from lakebed.tables.catalog import TableCatalog

MEMORY_BYTES_MIN, MEMORY_BYTES_MAX = 1 << 20, 1 << 40

UNFINISHED_SECONDS_MAX = 48 * 3_600.0
"""How long an object may take to be finished: as long as a job may be pending."""


def _cpus() -> int:
    """Return how many CPUs this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)  # not everywhere
    return len(affinity(0)) if affinity else os.cpu_count() or 1


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


class LocalApp:
    """The services of a lake in a directory. Several processes may open one lake at once.

    clock: None: this machine's. All processes of a lake use the same. objects: a store, or
    s3://bucket/prefix; None: as the lake says, a new one's in the directory. memory: None:
    the usual.

    Raises:
        InvalidError: nothing to keep it in, or more than machines have.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        create: bool = True,
        clock: Clock | None = None,
        objects: str | ObjectStore | None = None,
        memory: Memory | None = None,
    ) -> None:
        memory = memory or Memory()
        memory.check()
        self.clock = clock or SystemClock()
        self.chance = system_random()
        self.directory, self.objects = self._open(path, create=create, objects=objects)
        self.spill = ProcessFolder(self.directory.spill)
        self.logs = SqliteTransactionLogs(self.directory.logs, self.clock)
        self.queues = SqliteJobQueues(self.directory.queues, clock=self.clock)
        self.registry = SqliteTableRegistry(self.directory.path)
        self.tracker = SqliteJobTracker(self.directory.queues)
        self.heads = WarmHeads(
            folder=self.directory.cache,
            scratch=self.spill.path,
            logs=self.logs,
            objects=self.objects,
            clock=self.clock,
            chance=self.chance,
        )
        self.files = ParquetFiles(
            self.objects,
            spill_directory=self.spill.path,
            cache_bytes=memory.cache_bytes,
            merge_bytes=memory.merge_bytes,
            workers=_cpus(),
        )
        self._delete_objects = DeleteTableObjects(objects=self.objects)
        self.catalog = TableCatalog(
            registry=self.registry,
            logs=self.logs,
            open_head=self.heads,
            delete_objects=self._delete_objects,
            chance=self.chance,
        )
        self.queue: SqliteJobQueue = self.queues.open(COMPACTION_QUEUE)
        self._make_services()

    def _open(
        self, path: str | os.PathLike[str], *, create: bool, objects: str | ObjectStore | None
    ) -> tuple[LakeDirectory, ObjectStore]:
        """Return the directory, and the objects of which it says where they are."""
        clock, chance = self.clock, self.chance
        if objects is None:
            directory = open_lake_directory(path, create=create)
            if directory.objects is None:
                return directory, LocalObjectStore(directory.path, clock)
            if directory.objects == GIVEN:
                hint = "give it again: connect(path, objects=STORE)"
                raise InvalidError("the lake's objects lie in a store", path=path, hint=hint)
            return directory, objects_at(directory.objects, clock=clock, chance=chance)
        store = opened_objects(objects, clock=clock, chance=chance)
        directory = open_lake_directory(
            path,
            create=create,
            objects=place_of(store),
            before_making=getattr(store, "probe", lambda: None),
        )
        return directory, store

    def _make_services(self) -> None:
        files, clock, tracker = self.files, self.clock, self.tracker
        self.ingest = IngestRows[pa.RecordBatch](files=files, clock=clock, tracker=tracker)
        self.create_jobs = CreateCompactionJobs(queue=self.queue, tracker=tracker, clock=clock)
        self.run_job = RunCompactionJob[pa.RecordBatch](files=files, clock=clock, tracker=tracker)
        self.give_up = GiveUpCompactionJob(clock=clock, tracker=tracker)
        self.split_leaves = SplitLeaves(files=files)
        self.collect = CollectGarbage(objects=self.objects)
        self.sweep = SweepObjects(objects=self.objects)
        self.query = RunQuery[pa.RecordBatch](files=files)
        self.fsck = Fsck(
            registry=self.registry,
            logs=self.logs,
            objects=self.objects,
            files=files,
            open_head=self.heads,
            snapshots=self.heads.snapshots,
            leftovers=self.leftovers,
        )
        self.repair = Repair(
            registry=self.registry,
            logs=self.logs,
            objects=self.objects,
            snapshots=self.heads.snapshots,
            rebuild_cache=self.rebuild_cache,
            sweep_objects=self.sweep_objects,
            sweep_leftovers=self.sweep_leftovers,
            delete_objects=self._delete_objects.run,
        )

    def status(self, names: Sequence[str]) -> list[TableStatus]:
        """Return what some tables look like now. Raises: TableMissingError."""
        offline = {entry.id for entry in self.catalog.list() if not entry.online}
        return [
            table_status(
                table,
                tracker=self.tracker,
                snapshots=self.heads.snapshots(table.id),
                queue=self.queue,
                online=table.id not in offline,
            )
            for table in [self.catalog.find(name) for name in names]
        ]

    def leftovers(self) -> list[Finding]:
        """Return what dead processes left on this machine."""
        objects = self.objects
        names = objects.unfinished() if isinstance(objects, LocalObjectStore) else ()
        unfinished = [finding("unfinished-upload", name=name) for name in names]
        spilled = dead_in(self.directory.spill)
        return unfinished + [finding("spill-left", name=path.name) for path in spilled]

    def sweep_leftovers(self) -> int:
        """Remove what dead processes left on this machine, however new: the dead hold no lock.

        What is unfinished elsewhere may be a living process's: only what is old goes.
        """
        is_here = isinstance(self.objects, LocalObjectStore)
        age = 0.0 if is_here else UNFINISHED_SECONDS_MAX
        unfinished = self.objects.abort_unfinished(older_than_seconds=age)
        return unfinished + remove_dead(self.directory.spill)

    def rebuild_cache(self, table: TableId) -> int:
        """Make what is kept of a table's state anew. Returns 1.

        Raises:
            ConflictError: another process has the lake open; nothing was changed.
        """
        others = others_alive(self.directory.spill, self.spill)
        if others:
            hint = "end it, then repair again"
            raise ConflictError("another process has the lake open", process=others[0], hint=hint)
        self.heads.rebuild(table)
        return 1

    def sweep_objects(self, name: TableName) -> int:
        """Sweep a table's objects now. Returns how many were deleted."""
        return self.sweep.run(self.catalog.find(name))

    def close(self) -> None:
        """Close files; what was committed stays."""
        self.heads.close()
        for part in (self.logs, self.queues, self.registry, self.tracker, self.spill):
            part.close()
