"""The door to the names of tables. A name points to an id; ids are never used twice."""

from __future__ import annotations

from typing import Protocol

import msgspec

from lakebed.model.names import TableId, TableName, TransactionNumber


class TableEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A table as the registry knows it. number: a hint, the newest log entry it has heard of."""

    id: TableId
    name: TableName
    online: bool = True
    number: TransactionNumber = TransactionNumber(0)


class TableRegistry(Protocol):
    """Names of tables. Every implementation passes `tests/contracts/test_table_registry.py`."""

    def claim(self, name: TableName, table: TableId) -> None:
        """Give a free name to a table. Again with the same id does nothing.

        Raises:
            TableExistsError: another table has the name.
        """
        ...

    def find(self, name: TableName) -> TableEntry | None:
        """Return the table called `name`. Strongly consistent."""
        ...

    def list(self) -> list[TableEntry]:
        """Return all tables, by name."""
        ...

    def release(self, name: TableName, table: TableId) -> None:
        """Free a name, if this table still has it."""
        ...

    def mark(self, table: TableId, number: TransactionNumber) -> None:
        """Remember that the table's log has reached `number`. A hint: it may be lost."""
        ...
