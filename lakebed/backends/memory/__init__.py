"""Every port in memory: for unit tests and the simulation. No more lenient than the real ones."""

from lakebed.backends.memory.clock import MachineClock, VirtualClock
from lakebed.backends.memory.feed_registry import MemoryFeedRegistry
from lakebed.backends.memory.file_batches import MemoryFileBatches
from lakebed.backends.memory.job_queues import MemoryJobQueue, MemoryJobQueues
from lakebed.backends.memory.job_tracker import MemoryJobTracker
from lakebed.backends.memory.leases import MemoryLeases
from lakebed.backends.memory.object_store import MemoryObjectStore
from lakebed.backends.memory.processes import MemoryProcessReports
from lakebed.backends.memory.secrets import MemorySecrets
from lakebed.backends.memory.table_marks import MemoryTableMarks
from lakebed.backends.memory.table_registry import MemoryTableRegistry
from lakebed.backends.memory.task_runner import MemoryTaskRunner
from lakebed.backends.memory.transaction_logs import MemoryTransactionLog, MemoryTransactionLogs
from lakebed.backends.memory.tuple_files import TupleFiles
from lakebed.backends.memory.usage_ledger import MemoryUsageLedger

__all__ = [
    "MachineClock",
    "MemoryFeedRegistry",
    "MemoryFileBatches",
    "MemoryJobQueue",
    "MemoryJobQueues",
    "MemoryJobTracker",
    "MemoryLeases",
    "MemoryObjectStore",
    "MemoryProcessReports",
    "MemorySecrets",
    "MemoryTableMarks",
    "MemoryTableRegistry",
    "MemoryTaskRunner",
    "MemoryTransactionLog",
    "MemoryTransactionLogs",
    "MemoryUsageLedger",
    "TupleFiles",
    "VirtualClock",
]
