"""Names of tables in memory."""

from __future__ import annotations

from lakebed.errors import TableExistsError
from lakebed.model.names import TableId, TableName, TransactionNumber
from lakebed.ports.table_registry import TableEntry


class MemoryTableRegistry:
    """Names of tables."""

    def __init__(self) -> None:
        self._tables: dict[TableName, TableId] = {}
        self._numbers: dict[TableId, TransactionNumber] = {}

    def claim(self, name: TableName, table: TableId) -> None:
        """Give a free name to a table."""
        if self._tables.setdefault(name, table) != table:
            raise TableExistsError("a table has this name", name=name, hint="choose another name")

    def find(self, name: TableName) -> TableEntry | None:
        """Return the table called `name`."""
        table = self._tables.get(name)
        return None if table is None else self._entry(name, table)

    def list(self) -> list[TableEntry]:
        """Return all tables, by name."""
        return [self._entry(name, table) for name, table in sorted(self._tables.items())]

    def release(self, name: TableName, table: TableId) -> None:
        """Free a name, if this table still has it."""
        if self._tables.get(name) == table:
            del self._tables[name]
            if table not in self._tables.values():
                self._numbers.pop(table, None)

    def mark(self, table: TableId, number: TransactionNumber) -> None:
        """Remember that the table's log has reached `number`; a lower one changes nothing."""
        if table in self._tables.values():
            self._numbers[table] = max(number, self._numbers.get(table, number))

    def _entry(self, name: TableName, table: TableId) -> TableEntry:
        number = self._numbers.get(table, TransactionNumber(0))
        return TableEntry(id=table, name=name, number=number)
