"""A directory that is a lake: several processes at once, durable through crashes and power loss."""

from lakebed.backends.local.feed_registry import SqliteFeedRegistry
from lakebed.backends.local.file_batches import SqliteFileBatches
from lakebed.backends.local.job_queues import SqliteJobQueue, SqliteJobQueues
from lakebed.backends.local.job_tracker import SqliteJobTracker
from lakebed.backends.local.lake_directory import LakeDirectory, open_lake_directory
from lakebed.backends.local.leases import SqliteLeases
from lakebed.backends.local.object_store import LocalObjectStore
from lakebed.backends.local.secrets import EnvironmentSecrets, FileSecrets, FirstOfSecrets
from lakebed.backends.local.table_registry import SqliteTableRegistry
from lakebed.backends.local.transaction_logs import SqliteTransactionLog, SqliteTransactionLogs
from lakebed.backends.local.usage_ledger import SqliteUsageLedger

__all__ = [
    "EnvironmentSecrets",
    "FileSecrets",
    "FirstOfSecrets",
    "LakeDirectory",
    "LocalObjectStore",
    "SqliteFeedRegistry",
    "SqliteFileBatches",
    "SqliteJobQueue",
    "SqliteJobQueues",
    "SqliteJobTracker",
    "SqliteLeases",
    "SqliteTableRegistry",
    "SqliteTransactionLog",
    "SqliteTransactionLogs",
    "SqliteUsageLedger",
    "open_lake_directory",
]
