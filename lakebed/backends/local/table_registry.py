"""Names of tables in one SQLite file."""

from __future__ import annotations

import os
from pathlib import Path

from lakebed.backends.local.sqlite_database import SqliteDatabase
from lakebed.errors import TableExistsError
from lakebed.model.names import TableId, TableName, TransactionNumber
from lakebed.ports.table_registry import TableEntry

_SCHEMA = """
CREATE TABLE name (name TEXT PRIMARY KEY, table_id TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE INDEX name_by_table ON name (table_id);
CREATE TABLE mark (table_id TEXT PRIMARY KEY, number INTEGER NOT NULL) STRICT, WITHOUT ROWID"""
_ENTRIES = "SELECT name, table_id, coalesce(number, 0) FROM name LEFT JOIN mark USING (table_id)"
_MARK = """
INSERT INTO mark SELECT ?1, ?2 WHERE EXISTS (SELECT 1 FROM name WHERE table_id = ?1)
ON CONFLICT (table_id) DO UPDATE SET number = max(number, excluded.number)"""
_UNMARK = """
DELETE FROM mark WHERE table_id = ?1 AND NOT EXISTS (SELECT 1 FROM name WHERE table_id = ?1)"""


class SqliteTableRegistry:
    """Names of tables, in the file `tables.sqlite` of a folder."""

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self._database = SqliteDatabase(Path(root) / "tables.sqlite", _SCHEMA)

    def claim(self, name: TableName, table: TableId) -> None:
        """Give a free name to a table."""
        with self._database.transaction() as connection:
            connection.execute("INSERT OR IGNORE INTO name VALUES (?, ?)", (name, table))
            where = "SELECT table_id FROM name WHERE name = ?"
            (holder,) = connection.execute(where, (name,)).fetchone()
        if holder != table:
            raise TableExistsError("a table has this name", name=name, hint="choose another name")

    def find(self, name: TableName) -> TableEntry | None:
        """Return the table called `name`."""
        with self._database.reading() as connection:
            row = connection.execute(f"{_ENTRIES} WHERE name = ?", (name,)).fetchone()
        return None if row is None else _entry(*row)

    def list(self) -> list[TableEntry]:
        """Return all tables, by name."""
        with self._database.reading() as connection:
            rows = connection.execute(f"{_ENTRIES} ORDER BY name").fetchall()
        return [_entry(*row) for row in rows]

    def release(self, name: TableName, table: TableId) -> None:
        """Free a name, if this table still has it."""
        with self._database.transaction() as connection:
            statement = "DELETE FROM name WHERE name = ? AND table_id = ?"
            connection.execute(statement, (name, table))
            connection.execute(_UNMARK, (table,))

    def mark(self, table: TableId, number: TransactionNumber) -> None:
        """Remember that the table's log has reached `number`; a lower one changes nothing."""
        with self._database.writing() as connection:
            connection.execute(_MARK, (table, number))

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        self._database.close()


def _entry(name: TableName, table: TableId, number: TransactionNumber) -> TableEntry:
    return TableEntry(id=table, name=name, number=number)
