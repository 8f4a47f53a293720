"""Names of tables in memory."""

from __future__ import annotations

import threading

import msgspec

from lakebed.errors import TableExistsError, TableMissingError
from lakebed.model.formats import Formats, higher
from lakebed.model.names import TableId, TableName
from lakebed.ports.table_registry import TableEntry

_HINT = "choose another name"


class MemoryTableRegistry:
    """Names of tables."""

    def __init__(self) -> None:
        self._entries: dict[TableName, TableEntry] = {}
        self._formats: Formats | None = None
        self._lock = threading.Lock()

    def claim(self, name: TableName, table: TableId, *, declared: bool = False) -> None:
        """Give a free name to a table."""
        new = TableEntry(id=table, name=name, declared=declared)
        with self._lock:
            others = [e.name for e in self._entries.values() if e.id == table and e.name != name]
            if others and name not in self._entries:
                raise TableExistsError("the table has another name", name=others[0])
            if self._entries.setdefault(name, new).id != table:
                raise TableExistsError("a table has this name", name=name, hint=_HINT)

    def find(self, name: TableName) -> TableEntry | None:
        """Return the table called `name`."""
        return self._entries.get(name)

    def list(self) -> list[TableEntry]:
        """Return all tables, by name."""
        with self._lock:
            return [entry for _, entry in sorted(self._entries.items())]

    def rename(self, old: TableName, new: TableName, table: TableId) -> None:
        """Give a table another name."""
        with self._lock:
            found, taken = self._entries.get(old), self._entries.get(new)
            if taken is not None and taken.id != table:
                raise TableExistsError("a table has this name", name=new, hint=_HINT)
            if taken is None and (found is None or found.id != table):
                raise TableMissingError("the table does not have this name", name=old)
            if taken is None and found is not None:
                del self._entries[old]
                self._entries[new] = msgspec.structs.replace(found, name=new)

    def set_online(self, name: TableName, table: TableId, *, online: bool) -> None:
        """Take a table offline or put it online."""
        with self._lock:
            found = self._found(name, table)
            quarantined = found.quarantined and not online
            self._entries[name] = msgspec.structs.replace(
                found, online=online, quarantined=quarantined
            )

    def quarantine(self, name: TableName, table: TableId) -> None:
        """Set a table aside."""
        with self._lock:
            found = self._found(name, table)
            self._entries[name] = msgspec.structs.replace(found, online=False, quarantined=True)

    def declare(self, name: TableName, table: TableId) -> None:
        """Note that a table is declared."""
        with self._lock:
            found = self._found(name, table)
            self._entries[name] = msgspec.structs.replace(found, declared=True)

    def watch(self, name: TableName, table: TableId, folder: str) -> None:
        """Note which folder's files become rows of a table."""
        with self._lock:
            found = self._found(name, table)
            self._entries[name] = msgspec.structs.replace(found, watched=folder)

    def release(self, name: TableName, table: TableId) -> None:
        """Free a name, if this table still has it."""
        with self._lock:
            found = self._entries.get(name)
            if found is not None and found.id == table:
                del self._entries[name]

    def formats(self) -> Formats | None:
        """Return the newest forms that may be written."""
        return self._formats

    def raise_formats(self, formats: Formats) -> None:
        """Allow these forms."""
        with self._lock:
            self._formats = higher(formats, self._formats or formats)

    def _found(self, name: TableName, table: TableId) -> TableEntry:
        found = self._entries.get(name)
        if found is None or found.id != table:
            raise TableMissingError("the table does not have this name", name=name)
        return found
