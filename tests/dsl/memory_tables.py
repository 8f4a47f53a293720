"""Tables of one lake in memory, met by several processes that may be killed."""

import random
from collections.abc import Callable, Mapping
from typing import Any

from lakebed.backends.faulty import CALM, CrashPlan, Faults, FaultyTransactionLogs
from lakebed.backends.memory import (
    MemoryObjectStore,
    MemoryTableRegistry,
    MemoryTransactionLogs,
    VirtualClock,
)
from lakebed.backends.system.installed_steps import StepsBesideUs
from lakebed.garbage.sweep import DeleteTableObjects
from lakebed.model.names import TableId
from lakebed.statestore.answers import Retry
from lakebed.statestore.head import TableHead
from lakebed.tables.apply_tables import ApplyTables
from lakebed.tables.catalog import TableCatalog
from lakebed.tables.declarations import declarations_of
from lakebed.tables.download_tables import download_tables
from lakebed.tables.plan_steps import Removal, TablesPlan
from lakebed.tasks.watched_folders import WatchableFolders
from tests.simulation.new_state import new_state
from tests.simulation.registry import KillableRegistry

SOURCE = "s3://landing"
"""Where files arrive that tables may watch."""


class MemoryTables:
    """The stores that all processes meet."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.logs = MemoryTransactionLogs(self.clock)
        self.objects = MemoryObjectStore(self.clock)
        self.registry = MemoryTableRegistry()
        self._rng = random.Random(1)

    def process(self, crashes: CrashPlan | None = None, faults: Faults | None = None) -> "Process":
        """A process that knows nothing yet. Ids of no two are the same."""
        rng = random.Random(self._rng.random())
        return Process(self, crashes or CrashPlan(), faults or Faults(rng, CALM), rng)


class Process:
    """One process with its own heads and doors."""

    def __init__(
        self, stores: MemoryTables, crashes: CrashPlan, faults: Faults, rng: random.Random
    ) -> None:
        self.crashes = crashes
        self.faults = faults
        self.stores = stores
        self._rng = rng
        self._heads: dict[TableId, TableHead] = {}
        self._logs = FaultyTransactionLogs(stores.logs, faults, crashes)
        self.catalog = TableCatalog(
            registry=KillableRegistry(stores.registry, faults, crashes),
            logs=self._logs,
            open_head=self._head,
            delete_objects=DeleteTableObjects(objects=stores.objects),
            rng=self._rng,
            watchable=WatchableFolders([SOURCE]),
        )
        self.tables = ApplyTables(catalog=self.catalog, steps=StepsBesideUs())

    def apply(
        self, texts: Mapping[str, str], remove: Removal | None = None, *, lose: bool = True
    ) -> TablesPlan:
        """Do what files say. lose: with consent to all that a first look says is lost."""
        declared = declarations_of(texts)
        losses = self.tables.plan(declared, remove=remove).losses if lose else ()
        return self.tables.run(declared, remove=remove, losses=losses)

    def texts(self) -> dict[str, str]:
        """What is there, as files."""
        return download_tables(self.catalog)

    def numbers(self) -> dict[str, int]:
        """How long the log of each table is."""
        found = {}
        for entry in self.catalog.list():
            with self.catalog.opened(entry).head.reading() as state:
                found[entry.name] = state.head().number
        return found

    def _head(self, table: TableId) -> TableHead:
        if table not in self._heads:
            self._heads[table] = TableHead(
                self._logs.open(table),
                new_state(),
                clock=self.stores.clock,
                rng=self._rng,
                retry=Retry(seconds_max=5.0),
            )
        return self._heads[table]


class Interrupted(CrashPlan):
    """Nobody is killed: before the n-th effect others do something, once."""

    def __init__(self, at: int, act: Callable[[], Any]) -> None:
        super().__init__()
        self._at = at
        self._act = act

    def effect(self, name: str) -> Any:  # noqa: ANN401 - as the plan's
        """Let others act first, if it is time."""
        if len(self.effects) + 1 == self._at:
            self._at = 0
            self._act()
        return super().effect(name)
