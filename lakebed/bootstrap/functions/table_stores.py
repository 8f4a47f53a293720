"""Opens the stores of functions that work on tables: without a parameter, and without Arrow.

States of tables are kept in the function's own folder as long as it lives, and read again from log
and snapshots when another one starts.
"""

from __future__ import annotations

import random
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lakebed.backends.system.random_source import system_random
from lakebed.bootstrap.aws_stores import objects_of
from lakebed.config.functions import DISK_MIB_MIN, full_disk_hint, states_bytes_max
from lakebed.model.names import TableId
from lakebed.ports.clock import Clock
from lakebed.ports.object_store import ObjectStore
from lakebed.ports.table_marks import TableMarks
from lakebed.ports.table_registry import TableEntry, TableRegistry
from lakebed.ports.transaction_log import TransactionLogs
from lakebed.schedules.work_on_table import Due, Work, WorkOnTable, never_due
from lakebed.statestore.format_gate import FormatGate
from lakebed.statestore.marked_logs import MarkedTransactionLogs
from lakebed.statestore.open_table import OpenTable
from lakebed.statestore.table_state.closable_state import StateLimits
from lakebed.statestore.warm_heads import WarmHeads

if TYPE_CHECKING:
    from lakebed.backends.aws.clients import AmazonClients
    from lakebed.config.environments import BulkImportRunsEnvironment, TableFunctionEnvironment


@dataclass(frozen=True, slots=True, kw_only=True)
class TableStores:
    """The stores that hold tables.

    scratch: a folder for temporary files, this process's own.
    """

    clock: Clock
    rng: random.Random
    objects: ObjectStore
    logs: TransactionLogs
    registry: TableRegistry
    marks: TableMarks
    heads: WarmHeads
    scratch: Path

    def opened(self, entry: TableEntry) -> OpenTable:
        """Return a table in the hands of a service. Raises: TableQuarantinedError."""
        entry.require_use()
        head = self.heads(entry.id)
        return OpenTable(id_=entry.id, name=entry.name, head=head, rng=self.rng)

    def find(self, id_: TableId) -> OpenTable | None:
        """Return the table with an id; None: it has no name any more."""
        for entry in self.registry.list():
            if entry.id == id_:
                return self.opened(entry)
        return None

    def work(self, name: str, work: Work, *, due: Due = never_due) -> WorkOnTable:
        """Return what does one kind of scheduled work on these tables."""
        return WorkOnTable(
            name,
            work,
            due=due,
            opened=self.opened,
            registry=self.registry,
            marks=self.marks,
            clock=self.clock,
        )


def table_stores(
    *,
    clock: Clock,
    rng: random.Random,
    objects: ObjectStore,
    logs: TransactionLogs,
    registry: TableRegistry,
    marks: TableMarks,
    folder: Path,
    disk_mib: int = DISK_MIB_MIN,
) -> TableStores:
    """Return stores whose logs mark each entry.

    folder: for states and temporary files.

    disk_mib: of the disk with that folder, which no other program uses.
    """
    marked = MarkedTransactionLogs(logs, marks)
    states, scratch = folder / "states", folder / "scratch"
    for part in (states, scratch):
        part.mkdir(mode=0o700, parents=True, exist_ok=True)
    heads = WarmHeads(
        folder=states,
        scratch=scratch,
        logs=marked,
        objects=objects,
        clock=clock,
        rng=rng,
        limits=StateLimits(
            bytes_max=states_bytes_max(disk_mib), full_hint=full_disk_hint(disk_mib)
        ),
        formats=FormatGate(registry, clock),
    )
    return TableStores(
        clock=clock,
        rng=rng,
        objects=objects,
        logs=marked,
        registry=registry,
        marks=marks,
        heads=heads,
        scratch=scratch,
    )


def amazon_table_stores(
    clients: AmazonClients, environment: TableFunctionEnvironment | BulkImportRunsEnvironment
) -> TableStores:
    """Return the stores that a function's environment names."""
    from lakebed.backends.aws.table_marks import DynamoTableMarks
    from lakebed.backends.aws.table_registry import DynamoTableRegistry
    from lakebed.backends.aws.transaction_logs import DynamoTransactionLogs

    rng = system_random()
    objects = objects_of(clients, environment.bucket, environment.objects_prefix, rng)
    return table_stores(
        clock=clients.clock,
        rng=rng,
        objects=objects,
        logs=DynamoTransactionLogs(clients, environment.log_table, objects=objects, rng=rng),
        registry=DynamoTableRegistry(clients, environment.registry_table),
        marks=DynamoTableMarks(clients, environment.registry_table),
        folder=Path(tempfile.mkdtemp(prefix="lakebed-")),
        disk_mib=int(environment.function_disk_mib),
    )
