"""Wrappers around any backend that do what networks and machines do: lose, delay, double, crash."""

from lakebed.backends.faulty.crash_plan import Crash, CrashPlan
from lakebed.backends.faulty.faults import CALM, HARSH, MILD, Fault, Faults
from lakebed.backends.faulty.feed_registry import FaultyFeedRegistry
from lakebed.backends.faulty.file_batches import FaultyFileBatches
from lakebed.backends.faulty.job_queues import FaultyJobQueue, FaultyJobQueues
from lakebed.backends.faulty.leases import FaultyLeases, RestoredLeases
from lakebed.backends.faulty.object_store import FaultyObjectStore
from lakebed.backends.faulty.registry_faults import HARSH_REGISTRY, RegistryFault, RegistryFaults
from lakebed.backends.faulty.transaction_logs import FaultyTransactionLog, FaultyTransactionLogs

__all__ = [
    "CALM",
    "HARSH",
    "HARSH_REGISTRY",
    "MILD",
    "Crash",
    "CrashPlan",
    "Fault",
    "Faults",
    "FaultyFeedRegistry",
    "FaultyFileBatches",
    "FaultyJobQueue",
    "FaultyJobQueues",
    "FaultyLeases",
    "FaultyObjectStore",
    "FaultyTransactionLog",
    "FaultyTransactionLogs",
    "RegistryFault",
    "RegistryFaults",
    "RestoredLeases",
]
