"""Names of tables as one worker meets them: others go on at the door, and it may be killed."""

from __future__ import annotations

from lakebed.backends.faulty import CrashPlan, Faults
from lakebed.model.formats import Formats
from lakebed.model.names import TableId, TableName
from lakebed.ports.table_registry import TableEntry, TableRegistry


class KillableRegistry:
    """A registry whose effects are counted. crashes: that worker's."""

    def __init__(self, registry: TableRegistry, faults: Faults, crashes: CrashPlan) -> None:
        self._registry = registry
        self._faults = faults
        self._crashes = crashes

    def claim(self, name: TableName, table: TableId, *, declared: bool = False) -> None:
        """Give a free name to a table."""
        self._pass_door()
        with self._crashes.effect("name claim"):
            self._registry.claim(name, table, declared=declared)

    def find(self, name: TableName) -> TableEntry | None:
        """Return the table called `name`."""
        self._pass_door()
        return self._registry.find(name)

    def list(self) -> list[TableEntry]:
        """Return all tables, by name."""
        self._pass_door()
        return self._registry.list()

    def rename(self, old: TableName, new: TableName, table: TableId) -> None:
        """Give a table another name."""
        self._pass_door()
        with self._crashes.effect("rename"):
            self._registry.rename(old, new, table)

    def set_online(self, name: TableName, table: TableId, *, online: bool) -> None:
        """Take a table offline or put it online."""
        self._pass_door()
        with self._crashes.effect("online change"):
            self._registry.set_online(name, table, online=online)

    def quarantine(self, name: TableName, table: TableId) -> None:
        """Set a table aside."""
        self._pass_door()
        with self._crashes.effect("quarantine"):
            self._registry.quarantine(name, table)

    def declare(self, name: TableName, table: TableId) -> None:
        """Note that a table is declared."""
        self._pass_door()
        with self._crashes.effect("declaration"):
            self._registry.declare(name, table)

    def watch(self, name: TableName, table: TableId, folder: str) -> None:
        """Note which folder's files become rows of a table."""
        self._pass_door()
        with self._crashes.effect("watch change"):
            self._registry.watch(name, table, folder)

    def release(self, name: TableName, table: TableId) -> None:
        """Free a name, if this table still has it."""
        self._pass_door()
        with self._crashes.effect("name release"):
            self._registry.release(name, table)

    def formats(self) -> Formats | None:
        """Return the newest forms that may be written."""
        self._pass_door()
        return self._registry.formats()

    def raise_formats(self, formats: Formats) -> None:
        """Allow these forms."""
        self._pass_door()
        with self._crashes.effect("formats raise"):
            self._registry.raise_formats(formats)

    def _pass_door(self) -> None:
        self._crashes.check_alive()
        self._faults.pass_door()
