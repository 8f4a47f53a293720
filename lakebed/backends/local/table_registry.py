"""Names of tables in one SQLite file."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from lakebed.backends.local.lake_directory import LOGS
from lakebed.backends.local.sqlite_database import SqliteDatabase, damaged
from lakebed.errors import CorruptError, TableExistsError, TableMissingError
from lakebed.model.disk_errors import translated
from lakebed.model.formats import Formats, formats_of
from lakebed.model.names import TableId, TableName
from lakebed.ports.table_registry import NAMES_GONE, TableEntry

_FORMAT = 4
_SCHEMA = """
CREATE TABLE name (
    name TEXT PRIMARY KEY,
    table_id TEXT NOT NULL,
    online INTEGER NOT NULL DEFAULT 1,
    quarantined INTEGER NOT NULL DEFAULT 0,
    checksum INTEGER
) STRICT, WITHOUT ROWID"""
_UPGRADES = {
    1: (
        "ALTER TABLE name ADD COLUMN online INTEGER NOT NULL DEFAULT 1",
        "DROP INDEX name_by_table",
        "DROP TABLE mark",
    ),
    2: ("ALTER TABLE name ADD COLUMN quarantined INTEGER NOT NULL DEFAULT 0",),
    3: (
        "ALTER TABLE name ADD COLUMN checksum INTEGER",
        "UPDATE name SET checksum = row_checksum(name, table_id, online, quarantined)",
    ),
}
_FORMAT_TABLE = """
CREATE TABLE IF NOT EXISTS format (
    name TEXT PRIMARY KEY,
    number INTEGER NOT NULL
) STRICT, WITHOUT ROWID"""
"""Made when it is first written: releases that do not know it go on with the same file."""
_DECLARED_TABLE = """
CREATE TABLE IF NOT EXISTS declared (
    table_id TEXT PRIMARY KEY,
    checksum INTEGER
) STRICT, WITHOUT ROWID"""
"""Ids of tables that are declared; made and passed over in the same way."""
_DECLARE = "INSERT OR IGNORE INTO declared VALUES (?1, row_checksum(?1))"
_WATCHED_TABLE = """
CREATE TABLE IF NOT EXISTS watched (
    table_id TEXT PRIMARY KEY,
    folder TEXT NOT NULL,
    checksum INTEGER
) STRICT, WITHOUT ROWID"""
"""Folders by the ids of the tables whose files lie there; made and passed over in the same way."""
_WATCH = "INSERT OR REPLACE INTO watched VALUES (?1, ?2, row_checksum(?1, ?2))"
_READ_MARKS = {
    "declared": "SELECT checksum IS row_checksum(table_id), table_id FROM declared",
    "watched": "SELECT checksum IS row_checksum(table_id, folder), table_id, folder FROM watched",
}
_UNMARK = {
    "declared": "DELETE FROM declared WHERE table_id = ?",
    "watched": "DELETE FROM watched WHERE table_id = ?",
}
_ASSIGN = "INSERT OR IGNORE INTO name VALUES (?1, ?2, ?3, ?4, row_checksum(?1, ?2, ?3, ?4))"
_RAISE = """
INSERT INTO format VALUES (?, ?)
ON CONFLICT (name) DO UPDATE SET number = max(number, excluded.number)"""
_HINT = "choose another name"
_SET = (
    "UPDATE name SET online = ?3, quarantined = coalesce(?4, quarantined),"
    " checksum = row_checksum(name, table_id, ?3, coalesce(?4, quarantined))"
    " WHERE name = ?1 AND table_id = ?2"
)
_ENTRIES = (
    "SELECT name, table_id, online, quarantined,"
    " checksum IS row_checksum(name, table_id, online, quarantined) FROM name"
)


class _Marks(NamedTuple):
    """The marks that the registry keeps beside names of tables.

    declared: ids of tables that are.
    watched: folders by ids of tables.
    """

    declared: Collection[TableId]
    watched: Mapping[TableId, str]


class SqliteTableRegistry:
    """Names of tables, in the file `tables.sqlite` of a folder. If that has logs of tables and not
    this file, reading raises CorruptError; `claim` makes the file anew."""

    def __init__(self, root: str | os.PathLike[str]) -> None:
        path = Path(root) / "tables.sqlite"
        self._logs = path.parent / LOGS
        self._database = SqliteDatabase(
            path, _SCHEMA, format=_FORMAT, upgrades=_UPGRADES, is_moved=True
        )

    def claim(self, name: TableName, table: TableId, *, declared: bool = False) -> None:
        """Give a free name to a table."""
        with self._database.writing() as connection:
            statement = (
                "INSERT OR IGNORE INTO name (name, table_id, checksum)"
                " SELECT ?1, ?2, row_checksum(?1, ?2, 1, 0)"
                " WHERE NOT EXISTS (SELECT 1 FROM name WHERE table_id = ?2)"
            )
            is_new = connection.execute(statement, (name, table)).rowcount
            if is_new and declared:
                _declare(connection, table)
            where = "SELECT table_id FROM name WHERE name = ?"
            holder = connection.execute(where, (name,)).fetchone()
        if holder is None:
            raise TableExistsError("the table has another name", table=table)
        if holder[0] != table:
            raise TableExistsError("a table has this name", name=name, hint=_HINT)

    def find(self, name: TableName) -> TableEntry | None:
        """Return the table called `name`."""
        self._refuse_gone()
        with self._database.reading() as connection:
            row = connection.execute(f"{_ENTRIES} WHERE name = ?", (name,)).fetchone()
            if row is None:
                return None
            marks = self._marks(connection)
        return self._entry(row, marks)

    def list(self) -> list[TableEntry]:
        """Return all tables, by name."""
        self._refuse_gone()
        with self._database.reading() as connection:
            rows = connection.execute(f"{_ENTRIES} ORDER BY name").fetchall()
            marks = self._marks(connection)
        return [self._entry(row, marks) for row in rows]

    def rename(self, old: TableName, new: TableName, table: TableId) -> None:
        """Give a table another name."""
        with self._database.writing() as connection:
            where = "SELECT table_id FROM name WHERE name = ?"
            taken = connection.execute(where, (new,)).fetchone()
            if taken is None:
                statement = (
                    "UPDATE name SET name = ?1,"
                    " checksum = row_checksum(?1, table_id, online, quarantined)"
                    " WHERE name = ?2 AND table_id = ?3"
                )
                changed = connection.execute(statement, (new, old, table)).rowcount
                if not changed:
                    raise TableMissingError("the table does not have this name", name=old)
            elif taken[0] != table:
                raise TableExistsError("a table has this name", name=new, hint=_HINT)

    def assign(self, entries: Sequence[TableEntry]) -> None:
        """Let tables have these names and marks instead of their own, all or none.

        Raises:
            TableExistsError: a table that is not among these has one of the names.
        """
        with self._database.writing() as connection:
            for entry in entries:
                connection.execute("DELETE FROM name WHERE table_id = ?", (entry.id,))
                _unmark(connection, entry.id)
            for entry in entries:
                values = (entry.name, entry.id, int(entry.online), int(entry.quarantined))
                if not connection.execute(_ASSIGN, values).rowcount:
                    raise TableExistsError("a table has this name", name=entry.name, hint=_HINT)
                if entry.declared:
                    _declare(connection, entry.id)
                if entry.watched:
                    _watch(connection, entry.id, entry.watched)

    def set_online(self, name: TableName, table: TableId, *, online: bool) -> None:
        """Take a table offline or put it online."""
        self._change(name, table, online=int(online), quarantined=0 if online else None)

    def quarantine(self, name: TableName, table: TableId) -> None:
        """Set a table aside."""
        self._change(name, table, online=0, quarantined=1)

    def declare(self, name: TableName, table: TableId) -> None:
        """Note that a table is declared."""
        with self._database.writing() as connection:
            _require(connection, name, table)
            _declare(connection, table)

    def watch(self, name: TableName, table: TableId, folder: str) -> None:
        """Note which folder's files become rows of a table."""
        with self._database.writing() as connection:
            _require(connection, name, table)
            _watch(connection, table, folder)

    def release(self, name: TableName, table: TableId) -> None:
        """Free a name, if this table still has it."""
        with self._database.writing() as connection:
            statement = "DELETE FROM name WHERE name = ? AND table_id = ?"
            if connection.execute(statement, (name, table)).rowcount:
                _unmark(connection, table)

    def formats(self) -> Formats | None:
        """Return the newest forms that may be written."""
        self._refuse_gone()
        with self._database.reading() as connection:
            if not _has(connection, "format"):
                return None
            stored = dict(connection.execute("SELECT name, number FROM format").fetchall())
        return formats_of(stored)

    def raise_formats(self, formats: Formats) -> None:
        """Allow these forms."""
        self._refuse_gone()
        with self._database.writing() as connection:
            connection.execute(_FORMAT_TABLE)
            connection.executemany(_RAISE, msgspec.structs.asdict(formats).items())

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        self._database.close()

    def _refuse_gone(self) -> None:
        """Raise CorruptError if tables have logs and no names: a new file would say that there is
        no table."""
        if self._database.exists():
            return
        with translated("looking for logs of tables"):
            has_logs = any(self._logs.glob("*.sqlite"))
        if has_logs:
            hint = "restore the file from a copy; else `lakebed fsck --repair` gives new names"
            raise CorruptError(NAMES_GONE, path=self._database.path, hint=hint)

    def _change(
        self, name: TableName, table: TableId, *, online: int, quarantined: int | None
    ) -> None:
        with self._database.writing() as connection:
            values = (name, table, online, quarantined)
            changed = connection.execute(_SET, values).rowcount
        if not changed:
            raise TableMissingError("the table does not have this name", name=name)

    def _marks(self, connection: sqlite3.Connection) -> _Marks:
        """Return what stands beside the names: which tables are declared, and what they watch."""
        declared = self._rows_of(connection, "declared")
        watched = self._rows_of(connection, "watched")
        return _Marks({id_ for (id_,) in declared}, dict(watched))

    def _rows_of(self, connection: sqlite3.Connection, marks: str) -> Sequence[Any]:
        """Return the rows of a table that may not be there, each proven by its checksum."""
        if not _has(connection, marks):
            return []
        rows = connection.execute(_READ_MARKS[marks]).fetchall()
        if not all(row[0] for row in rows):
            raise damaged(self._database.path, f"a {marks} table contradicts its checksum")
        return [row[1:] for row in rows]

    def _entry(self, row: Sequence[Any], marks: _Marks) -> TableEntry:
        name, table, online, quarantined, is_whole = row
        if not is_whole:
            raise damaged(self._database.path, "a name contradicts its checksum")
        return TableEntry(
            id=table,
            name=name,
            online=bool(online),
            quarantined=bool(quarantined),
            declared=table in marks.declared,
            watched=marks.watched.get(table, ""),
        )


def _require(connection: sqlite3.Connection, name: TableName, table: TableId) -> None:
    """Raise TableMissingError if the table does not have the name."""
    where = "SELECT 1 FROM name WHERE name = ? AND table_id = ?"
    if connection.execute(where, (name, table)).fetchone() is None:
        raise TableMissingError("the table does not have this name", name=name)


def _declare(connection: sqlite3.Connection, table: TableId) -> None:
    connection.execute(_DECLARED_TABLE)
    connection.execute(_DECLARE, (table,))


def _watch(connection: sqlite3.Connection, table: TableId, folder: str) -> None:
    connection.execute(_WATCHED_TABLE)
    connection.execute(_WATCH, (table, folder))


def _unmark(connection: sqlite3.Connection, table: TableId) -> None:
    for marks, statement in _UNMARK.items():
        if _has(connection, marks):
            connection.execute(statement, (table,))


def _has(connection: sqlite3.Connection, table: str) -> bool:
    there = "SELECT 1 FROM sqlite_master WHERE name = ?"
    return connection.execute(there, (table,)).fetchone() is not None
