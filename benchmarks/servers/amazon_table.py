"""Heads of tables whose log is on the slow server, and their objects on another one."""

from __future__ import annotations

import random
from pathlib import Path

from benchmarks.servers.served_objects import ServedObjects
from benchmarks.servers.slow_amazon import SlowAmazon
from benchmarks.servers.slow_s3 import SlowS3
from benchmarks.servers.states import TABLE
from lakebed.backends.aws.clients import AmazonClients
from lakebed.backends.aws.transaction_logs import DynamoTransactionLogs
from lakebed.backends.system.clock import SystemClock
from lakebed.model.names import TableId
from lakebed.ports.transaction_log import TransactionLog
from lakebed.statestore.head import TableHead
from lakebed.statestore.snapshots import Snapshots
from lakebed.statestore.table_state.layout import open_cache
from lakebed.statestore.table_state.state import TableState

LOG = "log"


def clients_of(amazon: SlowAmazon) -> AmazonClients:
    """Return clients of a server."""
    return AmazonClients(clock=SystemClock(), rng=random.Random(1), **amazon.config())


def log_of(
    clients: AmazonClients, objects: ServedObjects, table: TableId = TABLE
) -> TransactionLog:
    """Return a table's log."""
    logs = DynamoTransactionLogs(clients, LOG, objects=objects, rng=random.Random(2))
    return logs.open(table)


def opened(
    folder: Path,
    s3: SlowS3 | None,
    amazon: SlowAmazon,
    *,
    cache: str,
    table: TableId = TABLE,
    clients: AmazonClients | None = None,
) -> TableHead:
    """Return a table's head. cache: the name of the file with its state, in the folder."""
    known = clients or clients_of(amazon)
    objects = ServedObjects(folder / "bench" / "lake", s3)
    snapshots = Snapshots(table, objects, scratch=folder)
    state = TableState(open_cache(folder / f"{cache}.sqlite", begin=snapshots.begin_cache))
    return TableHead(
        log_of(known, objects, table),
        state,
        clock=known.clock,
        rng=random.Random(3),
        snapshots=snapshots,
    )
