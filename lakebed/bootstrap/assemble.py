"""Puts the services of a lake together, over whatever stores they are given."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from lakebed.backends.local.process_folder import ProcessFolder
from lakebed.backends.system.installed_steps import StepsBesideUs
from lakebed.backends.system.strategy_processes import StrategyProcesses
from lakebed.bootstrap.app import NOTHING_PAID, App, LocalParts, Paying
from lakebed.bootstrap.feeds.stores import FeedStores
from lakebed.bootstrap.inspection_services import (
    InspectedParts,
    InspectionServices,
    inspection_services,
)
from lakebed.bootstrap.leftovers import Leftovers
from lakebed.bootstrap.machine import merge_processes, open_tables_max
from lakebed.bootstrap.memory import Memory
from lakebed.bootstrap.merge_process import merge_helpers
from lakebed.bootstrap.object_locations import ObjectsLocation
from lakebed.bootstrap.paying.usage import counted_process
from lakebed.bootstrap.releases import report_by_lock, report_meanwhile
from lakebed.compaction.create_jobs import CreateCompactionJobs
from lakebed.compaction.run_job import GiveUpCompactionJob, RunCompactionJob
from lakebed.deletes.delete_rows import DeleteRows
from lakebed.deletes.drop_ranges import DropRanges
from lakebed.deletes.rewrite_leaves import RewriteLeaves
from lakebed.garbage.collect import CollectGarbage
from lakebed.garbage.sweep import DeleteTableObjects, SweepObjects
from lakebed.ingest.ingest_rows import IngestRows
from lakebed.model.jobs import COMPACTION_QUEUE
from lakebed.ports.clock import Clock
from lakebed.ports.file_batches import FileBatches
from lakebed.ports.installed_steps import InstalledSteps
from lakebed.ports.job_queue import JobQueue, JobQueues
from lakebed.ports.job_tracker import JobTracker
from lakebed.ports.object_store import ObjectStore
from lakebed.ports.processes import ProcessReports
from lakebed.ports.source_files import SourceFiles
from lakebed.ports.table_registry import TableRegistry
from lakebed.ports.transaction_log import TransactionLogs
from lakebed.query.count_rows import CountRows
from lakebed.query.follow_changes import FollowChanges
from lakebed.query.past_versions import PastVersions
from lakebed.query.run_query import RunQuery
from lakebed.query.scan_caps import RequestPrice
from lakebed.sorted_files.parquet_files import MEMORY_BYTES, ParquetFiles
from lakebed.splitting.split_leaves import SplitLeaves
from lakebed.statestore.committer import Committer
from lakebed.statestore.format_gate import FormatGate
from lakebed.statestore.queued_commits import COMMIT_QUEUE, SendCommits
from lakebed.statestore.table_state.closable_state import StateLimits
from lakebed.statestore.warm_heads import WarmHeads
from lakebed.tables.catalog import TableCatalog
from lakebed.tasks.failed_work import FailedTables
from lakebed.tasks.usage_keeper import UsageKeeper
from lakebed.tasks.watched_folders import IN_A_DIRECTORY, WatchableFolders

FIRST_REPORT_SECONDS = 60.0
"""A program that ends before is not worth a report: most commands are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stores:
    """The stores of one lake, and the other backends that come with them.

    location: in words.
    clock: all processes of a lake use the same kind.
    batches: of submitted files; None: the lake has none.
    watchable: where folders may lie that tables watch.
    for_processes: where other processes find the objects; None: only this one does.
    bring_back: takes the deletion of an object back, if its versions are kept; None: none are.
    steps: see `App`.
    price: see `RunQuery`.
    source_files: see `App`, with a folder for files while they are read.
    processes: where processes of all machines report; None: those of this machine hold locks.
    first_report_seconds: until this process reports there.
    deployed: the release that the instance was deployed of; None: it is none.
    paying: see `App`.
    close: closes all stores.
    """

    location: str
    clock: Clock
    rng: random.Random
    objects: ObjectStore
    logs: TransactionLogs
    registry: TableRegistry
    queues: JobQueues
    tracker: JobTracker
    feeds: FeedStores
    batches: FileBatches | None = None
    watchable: WatchableFolders = IN_A_DIRECTORY
    for_processes: ObjectsLocation | None = None
    bring_back: Callable[[str], bool] | None = None
    steps: InstalledSteps = field(default_factory=StepsBesideUs)
    price: RequestPrice | None = None
    source_files: Callable[[Path], SourceFiles | None] = lambda _: None
    processes: ProcessReports | None = None
    first_report_seconds: float = FIRST_REPORT_SECONDS
    deployed: str | None = None
    paying: Paying = NOTHING_PAID
    close: Callable[[], None] = lambda: None


class _Kept(NamedTuple):
    """The resources that this process holds of a lake, and closes in the end."""

    spill: ProcessFolder
    processes: ProcessReports
    formats: FormatGate
    usage: UsageKeeper
    heads: WarmHeads
    open_heads: Callable[[int | None], WarmHeads]
    files: ParquetFiles


def assemble(
    stores: Stores, *, states: Path, spill: Path, memory: Memory, local: LocalParts | None = None
) -> App:
    """Return the services of a lake. `App.close` closes all that they hold, and the stores.

    states: a folder for states of tables, which processes may share.
    spill: a folder for rows on their way, in which each process makes one of its own.

    If this raises, the stores are closed.
    """
    opened = ExitStack()
    opened.callback(stores.close)
    try:
        kept = _kept(stores, opened, states=states, spill=spill, memory=memory)
        leftovers = Leftovers(stores.logs, stores.objects, stores.queues, spill)
        return _app(stores, kept, leftovers, close=opened.close, local=local)
    except BaseException:
        opened.close()
        raise


def _kept(stores: Stores, opened: ExitStack, *, states: Path, spill: Path, memory: Memory) -> _Kept:
    usage = counted_process(stores.paying.ledger, stores.clock)
    opened.callback(usage.close)
    folder = ProcessFolder(spill)
    opened.callback(folder.close)
    processes: ProcessReports = report_by_lock(spill, folder, stores.clock)
    if stores.processes is not None:
        processes = stores.processes
        report_meanwhile(
            processes,
            opened,
            clock=stores.clock,
            rng=stores.rng,
            first_seconds=stores.first_report_seconds,
        )
    formats = FormatGate(stores.registry, stores.clock)

    def open_heads(bytes_max: int | None) -> WarmHeads:
        return WarmHeads(
            folder=states,
            scratch=folder.path,
            logs=stores.logs,
            objects=stores.objects,
            clock=stores.clock,
            rng=stores.rng,
            limits=StateLimits(open_tables_max(), bytes_max=bytes_max),
            formats=formats,
        )

    heads = open_heads(memory.states_bytes)
    opened.callback(heads.close)
    helpers = merge_helpers(
        stores.for_processes, folder.path / "ranges", count=merge_processes() - 1
    )
    if helpers is not None:
        opened.callback(helpers.close)
    files = ParquetFiles(
        stores.objects,
        spill_directory=folder.path,
        memory_bytes=memory.work_bytes or MEMORY_BYTES,
        cache_bytes=memory.cache_bytes,
        merge_bytes=memory.merge_bytes,
        helpers=helpers,
    )
    return _Kept(folder, processes, formats, usage, heads, open_heads, files)


def _app(
    stores: Stores,
    kept: _Kept,
    leftovers: Leftovers,
    *,
    close: Callable[[], None],
    local: LocalParts | None,
) -> App:
    objects, clock, tracker, rng = stores.objects, stores.clock, stores.tracker, stores.rng
    files, spill, heads = kept.files, kept.spill, kept.heads
    queue, commit_queue = stores.queues.open(COMPACTION_QUEUE), stores.queues.open(COMMIT_QUEUE)
    past = PastVersions(logs=stores.logs, snapshots=heads.snapshots)
    catalog = _catalog(stores, kept)
    query, ingest = _query(stores, files, past), _ingest(stores, files)
    run_job = RunCompactionJob[pa.RecordBatch](files=files, clock=clock, tracker=tracker)
    give_up = GiveUpCompactionJob(clock=clock, tracker=tracker)
    return App(
        location=stores.location,
        clock=clock,
        rng=rng,
        objects=objects,
        logs=stores.logs,
        registry=stores.registry,
        tracker=tracker,
        feeds=stores.feeds,
        batches=stores.batches,
        queues=stores.queues,
        queue=queue,
        commit_queue=commit_queue,
        spill=spill,
        leftovers=leftovers,
        heads=heads,
        open_heads=kept.open_heads,
        files=files,
        catalog=catalog,
        failed_tables=FailedTables(clock),
        ingest=ingest(),
        queued_ingest=ingest(commits=SendCommits(queue=commit_queue, objects=objects, rng=rng)),
        committer=_committer(stores, heads, commit_queue),
        create_jobs=_create_jobs(stores, queue),
        steps=stores.steps,
        run_job=run_job,
        give_up=give_up,
        split_leaves=SplitLeaves(files=files),
        collect=CollectGarbage(objects=objects),
        sweep=SweepObjects(objects=objects),
        query=query,
        past=past,
        follow=FollowChanges[pa.RecordBatch](files=files, logs=stores.logs, past=past, query=query),
        count=CountRows[pa.RecordBatch](query=query, files=files),
        delete=_delete(query, files, run_job, give_up, clock),
        inspection=_inspection(stores, kept, leftovers, catalog),
        source_files=partial(stores.source_files, spill.path),
        url_files=partial(_url_files, stores, spill.path),
        usage=kept.usage,
        paying=stores.paying,
        close=close,
        local=local,
    )


def _committer(stores: Stores, heads: WarmHeads, queue: JobQueue) -> Committer:
    return Committer(
        queue=queue, objects=stores.objects, heads=heads, tracker=stores.tracker, clock=stores.clock
    )


def _query(stores: Stores, files: ParquetFiles, past: PastVersions) -> RunQuery[pa.RecordBatch]:
    return RunQuery[pa.RecordBatch](
        files=files, past=past, price=stores.price, budgets=stores.paying.budgets
    )


def _ingest(stores: Stores, files: ParquetFiles) -> Callable[..., IngestRows[pa.RecordBatch]]:
    """Return what makes services that take rows in."""
    return partial(
        IngestRows[pa.RecordBatch],
        files=files,
        clock=stores.clock,
        tracker=stores.tracker,
        budgets=stores.paying.budgets,
    )


def _create_jobs(stores: Stores, queue: JobQueue) -> CreateCompactionJobs:
    strategies = StrategyProcesses()
    return CreateCompactionJobs(
        queue=queue, tracker=stores.tracker, clock=stores.clock, strategies=strategies
    )


def _delete(
    query: RunQuery[pa.RecordBatch],
    files: ParquetFiles,
    run_job: RunCompactionJob[pa.RecordBatch],
    give_up: GiveUpCompactionJob,
    clock: Clock,
) -> DeleteRows[pa.RecordBatch]:
    return DeleteRows[pa.RecordBatch](
        ranges=DropRanges[pa.RecordBatch](query=query, files=files),
        rewrite=RewriteLeaves[pa.RecordBatch](
            files=files, clock=clock, run_job=run_job, give_up=give_up
        ),
    )


def _catalog(stores: Stores, kept: _Kept) -> TableCatalog:
    return TableCatalog(
        registry=stores.registry,
        logs=stores.logs,
        open_head=kept.heads,
        delete_objects=DeleteTableObjects(objects=stores.objects),
        rng=stores.rng,
        watchable=stores.watchable,
    )


def _inspection(
    stores: Stores, kept: _Kept, leftovers: Leftovers, catalog: TableCatalog
) -> InspectionServices:
    return inspection_services(
        InspectedParts(
            clock=stores.clock,
            objects=stores.objects,
            logs=stores.logs,
            registry=stores.registry,
            queues=stores.queues,
            tracker=stores.tracker,
            bring_back=stores.bring_back,
            processes=kept.processes,
            deployed=stores.deployed,
            spill=kept.spill,
            leftovers=leftovers,
            formats=kept.formats,
            heads=kept.heads,
            files=kept.files,
            catalog=catalog,
        )
    )


def _url_files(stores: Stores, folder: Path) -> SourceFiles:
    from lakebed.bootstrap.url_files import UrlFiles

    in_s3 = stores.source_files(folder)
    return UrlFiles(folder, in_s3=in_s3, clock=stores.clock, rng=stores.rng)
