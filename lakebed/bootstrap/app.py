"""The services of a lake in one process: a record of what commands, tasks and the public face use.

`assemble.py` puts it together; `local.py` and `aws.py` choose what it is put together from.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from lakebed.backends.local.lake_directory import LakeDirectory
from lakebed.backends.local.process_folder import ProcessFolder
from lakebed.bootstrap.feeds.stores import FeedStores
from lakebed.bootstrap.inspection_services import InspectionServices
from lakebed.bootstrap.leftovers import Leftovers
from lakebed.compaction.create_jobs import CreateCompactionJobs
from lakebed.compaction.run_job import GiveUpCompactionJob, RunCompactionJob
from lakebed.deletes.delete_rows import DeleteRows
from lakebed.garbage.collect import CollectGarbage
from lakebed.garbage.sweep import SweepObjects
from lakebed.ingest.ingest_rows import IngestRows
from lakebed.model.names import TableId
from lakebed.ports.clock import Clock
from lakebed.ports.file_batches import FileBatches
from lakebed.ports.installed_steps import InstalledSteps
from lakebed.ports.job_queue import JobQueue, JobQueues
from lakebed.ports.job_tracker import JobTracker
from lakebed.ports.object_store import ObjectStore
from lakebed.ports.paying.bills import Bills
from lakebed.ports.paying.usage_ledger import UsageLedger
from lakebed.ports.source_files import SourceFiles
from lakebed.ports.table_registry import TableRegistry
from lakebed.ports.transaction_log import TransactionLogs
from lakebed.query.count_rows import CountRows
from lakebed.query.follow_changes import FollowChanges
from lakebed.query.past_versions import PastVersions
from lakebed.query.run_query import RunQuery
from lakebed.sorted_files.parquet_files import ParquetFiles
from lakebed.splitting.split_leaves import SplitLeaves
from lakebed.statestore.committer import Committer
from lakebed.statestore.warm_heads import WarmHeads
from lakebed.tables.catalog import TableCatalog
from lakebed.tasks.budgets import Budgets
from lakebed.tasks.failed_work import FailedTables
from lakebed.tasks.usage_keeper import UsageKeeper

if TYPE_CHECKING:
    from lakebed.backups.copy_lake import NamesOfCopy
    from lakebed.backups.copy_table import LogCopy

INSTANCE_SCHEME = "aws:"
"""Prefix of an instance's name, wherever a lake's location is given."""


class LocalParts(NamedTuple):
    """The parts that only a lake in a directory has.

    log_copy: gives the log of a table as that of a copy, which grows by many entries at once.
    names: of tables, which a copy gets all at once.
    """

    directory: LakeDirectory
    log_copy: Callable[[TableId], LogCopy]
    names: NamesOfCopy


class Paying(NamedTuple):
    """The stores and services that answer what a lake costs.

    ledger: where usage is kept; None: it is not.
    budgets: what was spent in this month; None: nothing costs anything.
    bills: what AWS says that the instance cost; None: it is a directory.
    region: of AWS; "": it is a directory.
    """

    ledger: UsageLedger | None = None
    budgets: Budgets | None = None
    bills: Bills | None = None
    region: str = ""


NOTHING_PAID = Paying()
"""Usage is not kept, and costs nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class App:
    """The services of a lake. Several processes may open one lake at once.

    location: of the lake, in words.
    queue: of compaction jobs.
    spill: this process's folder for rows on their way.
    feeds: leases, definitions and secrets.
    batches: of submitted files; None: the lake has none.
    steps: those of users' packages that work on this lake's tables.
    inspection: services that few commands use, built when they are asked for.
    open_heads: opens states of tables beside `heads`, which take at most the bytes given; the
        caller closes them.
    source_files: users' files in S3, as far as this lake's credentials may read them; None: it has
        none.
    url_files: users' files by URL, for who calls the library.
    usage: keeps what this process uses, by kind of work and table.
    paying: what says what that costs.
    close: closes all of it; what was committed stays.
    local: None: the lake is on AWS.
    """

    location: str
    clock: Clock
    rng: random.Random
    objects: ObjectStore
    logs: TransactionLogs
    registry: TableRegistry
    tracker: JobTracker
    feeds: FeedStores
    batches: FileBatches | None
    queues: JobQueues
    queue: JobQueue
    commit_queue: JobQueue
    spill: ProcessFolder
    leftovers: Leftovers
    heads: WarmHeads
    open_heads: Callable[[int], WarmHeads]
    files: ParquetFiles
    catalog: TableCatalog
    failed_tables: FailedTables
    ingest: IngestRows[pa.RecordBatch]
    queued_ingest: IngestRows[pa.RecordBatch]
    committer: Committer
    create_jobs: CreateCompactionJobs
    run_job: RunCompactionJob[pa.RecordBatch]
    give_up: GiveUpCompactionJob
    split_leaves: SplitLeaves
    collect: CollectGarbage
    sweep: SweepObjects
    query: RunQuery[pa.RecordBatch]
    past: PastVersions
    follow: FollowChanges[pa.RecordBatch]
    count: CountRows[pa.RecordBatch]
    delete: DeleteRows[pa.RecordBatch]
    steps: InstalledSteps
    inspection: InspectionServices
    source_files: Callable[[], SourceFiles | None]
    url_files: Callable[[], SourceFiles]
    usage: UsageKeeper
    paying: Paying
    close: Callable[[], None]
    local: LocalParts | None
