"""Every backend of every port. A backend is added here, and meets all contracts."""

import os
import random
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from lakebed.backends.aws.batching.file_batches import DynamoFileBatches
from lakebed.backends.aws.costs.usage_ledger import DynamoUsageLedger
from lakebed.backends.aws.feeds.feed_registry import DynamoFeedRegistry
from lakebed.backends.aws.feeds.leases import DynamoLeases
from lakebed.backends.aws.job_queues import SqsJobQueues
from lakebed.backends.aws.job_tracker import DynamoDbJobTracker
from lakebed.backends.aws.releases.processes import DynamoProcessReports
from lakebed.backends.aws.table_marks import DynamoTableMarks
from lakebed.backends.aws.table_registry import DynamoTableRegistry
from lakebed.backends.aws.transaction_logs import DynamoTransactionLogs
from lakebed.backends.faulty import (
    CALM,
    Faults,
    FaultyFeedRegistry,
    FaultyFileBatches,
    FaultyLeases,
    RegistryFaults,
    RestoredLeases,
)
from lakebed.backends.local import (
    LocalObjectStore,
    SqliteFeedRegistry,
    SqliteFileBatches,
    SqliteJobQueues,
    SqliteJobTracker,
    SqliteLeases,
    SqliteTableRegistry,
    SqliteTransactionLogs,
    SqliteUsageLedger,
)
from lakebed.backends.local.process_folder import ProcessFolder
from lakebed.backends.local.processes import LockedProcessReports
from lakebed.backends.memory import (
    MemoryFeedRegistry,
    MemoryFileBatches,
    MemoryJobQueues,
    MemoryJobTracker,
    MemoryLeases,
    MemoryObjectStore,
    MemoryProcessReports,
    MemoryTableMarks,
    MemoryTableRegistry,
    MemoryTransactionLogs,
    MemoryUsageLedger,
    VirtualClock,
)
from lakebed.backends.system import SystemClock, system_random
from lakebed.config.dynamo_tables import (
    BATCHES_TABLE,
    LOG_TABLE,
    REGISTRY_TABLE,
    TRACKER_TABLE,
)
from lakebed.ports.feed_registry import FeedRegistry
from lakebed.ports.file_batches import FileBatches
from lakebed.ports.job_queue import JobQueues
from lakebed.ports.job_tracker import JobTracker
from lakebed.ports.leases import Leases
from lakebed.ports.object_store import ObjectStore
from lakebed.ports.paying.usage_ledger import UsageLedger
from lakebed.ports.processes import ProcessReports
from lakebed.ports.table_marks import TableMarks
from lakebed.ports.table_registry import TableRegistry
from lakebed.ports.transaction_log import TransactionLogs
from tests.contracts.fast_time import FastQueues
from tests.servers.dynamo_servers import MotoServer
from tests.servers.fixtures import (  # noqa: F401 - they are fixtures
    KNOWN_BAD,
    dynoxide,
    elasticmq,
    faulty_connections,
    faulty_requests,
    kafka,
    kafka_mock,
    ministack,
    moto,
    proxy,
    rclone,
    seaweedfs,
    stormy,
)
from tests.servers.s3 import S3Server
from tests.servers.sqs import make_queue

BACKENDS = ("memory", "local")
STORMY = pytest.param("stormy", marks=pytest.mark.slow)
QUEUE_BACKENDS = (*BACKENDS, "ministack", pytest.param("elasticmq", marks=pytest.mark.slow), STORMY)
OBJECT_BACKENDS = (
    *BACKENDS,
    "ministack",
    pytest.param("seaweedfs", marks=pytest.mark.slow),
    STORMY,
    *(["rclone"] if os.environ.get(KNOWN_BAD) else []),
)
RECEIVES_MAX = 3
DEVIATIONS = {
    r"paths_are_listed_by_code_points.*": "lists `a/` before `a!` and `a-b`",
    r"prefix_and_below_.*-(None|a/b/.*|a0|b|zz)-(a|a/|a/b)\]": "lists `a/` before `a!`",
    r"prefix_and_below_.*-(None|a/b/d|a0|b|zz)-x\]": "lists `a/` before `a!`",
    r"unusual_paths_are_kept.*-a\\\\b\]": "takes a backslash for a slash",
}
"""Where SeaweedFS is known to differ from S3. Paths of ours have no such neighbours."""

SERVERS = ("ministack", pytest.param("dynoxide", marks=pytest.mark.slow))
TRACKER_BACKENDS = (*BACKENDS, *SERVERS)
LOG_BACKENDS = REGISTRY_BACKENDS = (
    *TRACKER_BACKENDS,
    STORMY,
    pytest.param("moto", marks=pytest.mark.slow),
)
FOR_SEVERAL_THREADS = r"thread|race|beside"
"""Names of tests that moto is only asked by those who want to see it fail."""
PAGE_ENTRIES = 40
"""What one request reads of a log of DynamoDB here, so that logs have many pages."""

Logs = Callable[[], TransactionLogs]
Objects = Callable[[], ObjectStore]
Queues = Callable[[], JobQueues]
Registry = Callable[[], TableRegistry]
Marks = Callable[[], TableMarks]
Tracker = Callable[[], JobTracker]
ProcessesOf = Callable[[], ProcessReports]
Ledgers = Callable[[], UsageLedger]
LeasesOf = Callable[[], Leases]
BatchesOf = Callable[[], FileBatches]
Definitions = Callable[[], FeedRegistry]


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


def amazon(request: pytest.FixtureRequest) -> S3Server | MotoServer:
    """Return the server that a fixture's parameter names. moto: where one thread is enough."""
    for_several = re.search(FOR_SEVERAL_THREADS, request.node.name)
    if request.param == "moto" and for_several and not os.environ.get(KNOWN_BAD):
        pytest.skip("moto is for one thread")
    found: S3Server | MotoServer = request.getfixturevalue(request.param)
    return found


@pytest.fixture(params=LOG_BACKENDS)
def logs(request: pytest.FixtureRequest, clock: VirtualClock, tmp_path: Path) -> Iterator[Logs]:
    """Another view of the same logs with each call, as another process would have."""
    if request.param == "memory":
        same = MemoryTransactionLogs(clock)
        yield lambda: same
    elif request.param == "local":
        yield lambda: SqliteTransactionLogs(tmp_path, clock)
    else:
        server = amazon(request)
        table, objects = server.new_table(LOG_TABLE), LocalObjectStore(tmp_path, clock)
        with ExitStack() as stack:
            yield lambda: DynamoTransactionLogs(
                stack.enter_context(closing(server.clients(clock=clock))),
                table,
                objects=objects,
                rng=system_random(),
                page_entries=PAGE_ENTRIES,
            )


@pytest.fixture
def long_log(logs: Logs) -> int:
    """How many entries make a log long: several pages, few enough to be written soon."""
    return 3 * PAGE_ENTRIES + 10 if isinstance(logs(), DynamoTransactionLogs) else 2_500


@pytest.fixture(params=OBJECT_BACKENDS)
def objects(request: pytest.FixtureRequest, clock: VirtualClock, tmp_path: Path) -> Objects:
    """Another view of the same objects with each call."""
    if request.param == "memory":
        same = MemoryObjectStore(clock)
        return lambda: same
    if request.param == "local":
        return lambda: LocalObjectStore(tmp_path, SystemClock())
    for test, why in DEVIATIONS.items() if request.param == "seaweedfs" else ():
        if re.fullmatch(f"test_{test}", request.node.name):
            request.applymarker(pytest.mark.xfail(reason=f"SeaweedFS {why}"))
    server: S3Server = request.getfixturevalue(request.param)
    prefix = server.new_prefix()
    return lambda: server.store(prefix)


@pytest.fixture(params=QUEUE_BACKENDS)
def queue_backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def queues(
    request: pytest.FixtureRequest, queue_backend: str, clock: VirtualClock, tmp_path: Path
) -> Iterator[Queues]:
    """Another view of the same queues with each call; RECEIVES_MAX receives, then dead."""
    if queue_backend == "memory":
        same = MemoryJobQueues(clock, receives_max=RECEIVES_MAX)
        yield lambda: same
    elif queue_backend == "local":
        yield lambda: SqliteJobQueues(tmp_path, clock, receives_max=RECEIVES_MAX)
    else:
        server: S3Server = request.getfixturevalue(queue_backend)
        prefix = server.new_prefix()
        with closing(server.clients()) as clients, closing(server.calm.clients()) as calm:
            urls = {
                name: make_queue(calm, f"{prefix}-{name}", receives_max=RECEIVES_MAX)
                for name in ("jobs", "a", "b")
            }
            yield lambda: FastQueues(SqsJobQueues(clients, urls, rng=system_random()))


@pytest.fixture(params=REGISTRY_BACKENDS)
def registry(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Registry]:
    """Another view of the same names with each call."""
    if request.param == "memory":
        same = MemoryTableRegistry()
        yield lambda: same
    elif request.param == "local":
        yield lambda: SqliteTableRegistry(tmp_path)
    else:
        server = amazon(request)
        table = server.new_table(REGISTRY_TABLE)
        with ExitStack() as stack:
            yield lambda: DynamoTableRegistry(stack.enter_context(closing(server.clients())), table)


@pytest.fixture(params=("memory", *SERVERS))
def marks(request: pytest.FixtureRequest) -> Iterator[Marks]:
    """Another view of the same marks with each call."""
    if request.param == "memory":
        same = MemoryTableMarks()
        yield lambda: same
    else:
        server: S3Server = request.getfixturevalue(request.param)
        table = server.new_table(REGISTRY_TABLE)
        with ExitStack() as stack:
            yield lambda: DynamoTableMarks(stack.enter_context(closing(server.clients())), table)


@pytest.fixture(params=TRACKER_BACKENDS)
def tracker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Tracker]:
    """Another view of the same reports with each call."""
    if request.param == "memory":
        same = MemoryJobTracker()
        yield lambda: same
    elif request.param == "local":
        yield lambda: SqliteJobTracker(tmp_path)
    else:
        server: S3Server = request.getfixturevalue(request.param)
        table = server.new_table(TRACKER_TABLE)
        with closing(server.clients()) as clients:
            yield lambda: DynamoDbJobTracker(clients, table)


@pytest.fixture(params=TRACKER_BACKENDS)
def processes(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ProcessesOf]:
    """Another process's view with each call."""
    with ExitStack() as stack:
        if request.param == "memory":
            same = MemoryProcessReports()
            yield lambda: same
        elif request.param == "local":

            def another() -> ProcessReports:
                folder = stack.enter_context(closing(ProcessFolder(tmp_path)))
                return LockedProcessReports(tmp_path, folder)

            yield another
        else:
            server: S3Server = request.getfixturevalue(request.param)
            table = server.new_table(TRACKER_TABLE)
            clients = stack.enter_context(closing(server.clients()))
            yield lambda: DynamoProcessReports(clients, table)


@pytest.fixture(params=TRACKER_BACKENDS)
def ledgers(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ledgers]:
    """Another view of the same ledger with each call."""
    if request.param == "memory":
        same = MemoryUsageLedger()
        yield lambda: same
    elif request.param == "local":
        yield lambda: SqliteUsageLedger(tmp_path)
    else:
        server: S3Server = request.getfixturevalue(request.param)
        tracker, names = server.new_table(TRACKER_TABLE), server.new_table(REGISTRY_TABLE)
        with closing(server.clients()) as clients:
            yield lambda: DynamoUsageLedger(clients, tracker, registry=names)


def calm() -> RegistryFaults:
    """Return the luck of a worker whom nothing happens to."""
    return RegistryFaults(Faults(random.Random(1), CALM), rates={})


@pytest.fixture(params=("faulty", "restored", *REGISTRY_BACKENDS))
def leases(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[LeasesOf]:
    """Another view of the same leases with each call."""
    if request.param in {"memory", "faulty", "restored"}:
        same: Leases = MemoryLeases()
        if request.param == "faulty":
            same = FaultyLeases(same, calm())
        elif request.param == "restored":
            same = RestoredLeases(same, calm())
        yield lambda: same
    elif request.param == "local":
        yield lambda: SqliteLeases(tmp_path)
    else:
        server = amazon(request)
        table = server.new_table(REGISTRY_TABLE)
        with ExitStack() as stack:
            yield lambda: DynamoLeases(
                stack.enter_context(closing(server.clients())), table, rng=system_random()
            )


@pytest.fixture(params=("faulty", *REGISTRY_BACKENDS))
def file_batches(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BatchesOf]:
    """Another view of the same files and batches with each call."""
    if request.param in {"memory", "faulty"}:
        memory = MemoryFileBatches()
        faulty = FaultyFileBatches(memory, calm())
        yield lambda: memory if request.param == "memory" else faulty
    elif request.param == "local":
        yield lambda: SqliteFileBatches(tmp_path)
    else:
        server = amazon(request)
        table = server.new_table(BATCHES_TABLE)
        with ExitStack() as stack:
            yield lambda: DynamoFileBatches(
                stack.enter_context(closing(server.clients())), table, rng=system_random()
            )


@pytest.fixture(params=("faulty", *REGISTRY_BACKENDS))
def definitions(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Definitions]:
    """Another view of the same definitions with each call."""
    if request.param in {"memory", "faulty"}:
        memory = MemoryFeedRegistry()
        faulty = FaultyFeedRegistry(memory, calm())
        yield lambda: memory if request.param == "memory" else faulty
    elif request.param == "local":
        yield lambda: SqliteFeedRegistry(tmp_path)
    else:
        server = amazon(request)
        table = server.new_table(REGISTRY_TABLE)
        with ExitStack() as stack:
            yield lambda: DynamoFeedRegistry(
                stack.enter_context(closing(server.clients())), table, rng=system_random()
            )
