"""A directory that is a lake: several processes at once, durable through crashes and power loss."""

from lakebed.backends.local.job_queues import SqliteJobQueue, SqliteJobQueues
from lakebed.backends.local.job_tracker import SqliteJobTracker
from lakebed.backends.local.lake_directory import LakeDirectory, open_lake_directory
from lakebed.backends.local.object_store import LocalObjectStore
from lakebed.backends.local.table_registry import SqliteTableRegistry
from lakebed.backends.local.transaction_logs import SqliteTransactionLog, SqliteTransactionLogs

__all__ = [
    "LakeDirectory",
    "LocalObjectStore",
    "SqliteJobQueue",
    "SqliteJobQueues",
    "SqliteJobTracker",
    "SqliteTableRegistry",
    "SqliteTransactionLog",
    "SqliteTransactionLogs",
    "open_lake_directory",
]
