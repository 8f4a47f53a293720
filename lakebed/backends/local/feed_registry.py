"""Definitions of feeds in one SQLite file."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from lakebed.backends.local.kept_database import KeptDatabase
from lakebed.backends.local.sqlite_database import SqliteDatabase, damaged
from lakebed.feed_errors import DefinitionChangedError
from lakebed.model.feeds.definitions import (
    DefinitionChange,
    DefinitionEntry,
    DefinitionKind,
    Drop,
    FeedFailure,
    NamedDefinition,
    NoteFailure,
    Put,
    StoredDefinition,
    Want,
    WantedState,
    after,
    bounded,
    check_changes,
    check_number,
    has_happened,
)
from lakebed.model.feeds.endings import Ending, Endings
from lakebed.model.feeds.flushes import Flushes
from lakebed.ports.feed_registry import ENTRIES_MAX

_FORMAT = 2
_FLUSHES, _ENDINGS = ("flush", "wishes"), ("ending", "waiting")
"""Tables of one row each, and its column of JSON."""
_SUM = "row_checksum(kind, name, version, revision, id, body, wanted, code, reason, failed_version)"
_SUMS = {
    "definition": _SUM,
    "definition_number": "row_checksum(number)",
    **{table: f"row_checksum({column})" for table, column in (_FLUSHES, _ENDINGS)},
}
_CREATE_ROWS = tuple(
    f"""
CREATE TABLE IF NOT EXISTS {table} (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    {column} BLOB NOT NULL,
    checksum INTEGER NOT NULL
) STRICT"""
    for table, column in (_FLUSHES, _ENDINGS)
)
_SCHEMA = """
CREATE TABLE definition (
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    version INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    id TEXT NOT NULL,
    body BLOB,
    wanted TEXT NOT NULL,
    code TEXT,
    reason TEXT,
    failed_version INTEGER,
    checksum INTEGER NOT NULL,
    PRIMARY KEY (kind, name)
) STRICT, WITHOUT ROWID"""
_NUMBERS = """
CREATE TABLE definition_number (number INTEGER NOT NULL, checksum INTEGER NOT NULL) STRICT"""
_FIRST_NUMBER = "INSERT INTO definition_number VALUES (0, row_checksum(0))"
_UPGRADES = {
    1: (
        _NUMBERS,
        "INSERT INTO definition_number SELECT number, row_checksum(number) FROM registry",
        "DROP TABLE registry",
        *_CREATE_ROWS,
    )
}
"""A process of an older release that has the file open fails, and writes no number unproven."""
_ROWS = f"""
SELECT kind, name, version, revision, id, body, wanted, code, reason, failed_version,
    checksum IS {_SUM}
FROM definition"""  # noqa: S608 - constant texts
_WRITE = """
INSERT OR REPLACE INTO definition VALUES (
    ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, row_checksum(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
)"""
_NUMBER = "SELECT number, checksum IS row_checksum(number) FROM definition_number"
_SET_NUMBER = "UPDATE definition_number SET number = ?1, checksum = row_checksum(?1)"
_READ_ROW = "SELECT {1}, checksum IS row_checksum({1}) FROM {0}"
_WRITE_ROW = "INSERT OR REPLACE INTO {} VALUES (1, ?1, row_checksum(?1))"

T = TypeVar("T")


class SqliteFeedRegistry:
    """Definitions by kind and name, in the file `feeds.sqlite` of a folder."""

    def __init__(self, root: str | os.PathLike[str]) -> None:
        path = Path(root) / "feeds.sqlite"
        schema = ";".join((_SCHEMA, _NUMBERS, _FIRST_NUMBER, *_CREATE_ROWS))
        self._database = KeptDatabase(
            SqliteDatabase(path, schema, format=_FORMAT, upgrades=_UPGRADES, is_moved=True),
            _SUMS,
            what="definitions of feeds",
            instead="apply the files of feeds again: what is not said to go on begins anew with its"
            " source",
        )

    def number(self) -> int:
        """Return how often definitions were changed."""
        with self._database.reading() as connection:
            return self._number(connection)

    def lift(self, number: int) -> None:
        """Let the registry's number be at least this."""
        check_number(number)
        with self._database.writing() as connection:
            connection.execute(_SET_NUMBER, (max(self._number(connection), number),))

    def change(
        self, changes: Sequence[DefinitionChange], *, expected_number: int | None = None
    ) -> list[int]:
        """Change several definitions, all or none."""
        check_changes(changes)
        with self._database.writing() as connection:
            number = self._number(connection)
            if expected_number not in {None, number}:
                raise DefinitionChangedError("definitions have changed", number=number)
            versions = [self._apply(connection, c, number + 1).version for c in changes]
            if changes:
                connection.execute(_SET_NUMBER, (number + 1,))
        return versions

    def put(self, definition: NamedDefinition, expected_version: int) -> int:
        """Store a definition."""
        (version,) = self.change([Put(definition, expected_version)])
        return version

    def drop(self, kind: DefinitionKind, name: str, expected_version: int) -> None:
        """Forget a definition."""
        change = Drop(kind, name, expected_version)
        if not has_happened(self._find(kind, name), change):
            self.change([change])

    def get(self, kind: DefinitionKind, name: str) -> DefinitionEntry | None:
        """Return a definition."""
        stored = self._find(kind, name)
        return None if stored is None else stored.entry(kind, name)

    def list(
        self, kind: DefinitionKind, *, after: str = "", entries_max: int = ENTRIES_MAX
    ) -> list[DefinitionEntry]:
        """Return definitions whose names come after one."""
        where = "kind = ? AND name > ? AND body IS NOT NULL ORDER BY name LIMIT ?"
        with self._database.reading() as connection:
            values = (kind, after, entries_max)
            rows = connection.execute(f"{_ROWS} WHERE {where}", values).fetchall()
        found = [self._stored(row).entry(kind, row[1]) for row in rows]
        return [entry for entry in found if entry is not None]

    def want(
        self, kind: DefinitionKind, name: str, wanted: WantedState, expected_revision: int
    ) -> int:
        """Say what is wanted of a feed or a connection."""
        with self._database.writing() as connection:
            return self._apply(connection, Want(kind, name, wanted, expected_revision)).revision

    def note_failure(self, kind: DefinitionKind, name: str, failure: FeedFailure) -> None:
        """Say that a feed or a connection failed."""
        change = NoteFailure(kind, name, bounded(failure))
        if not has_happened(self._find(kind, name), change):
            with self._database.writing() as connection:
                self._apply(connection, change)

    def flushes(self) -> Flushes:
        """Return which feeds are to commit what they hold."""
        with self._database.reading() as connection:
            return self._kept(connection, _FLUSHES, Flushes)

    def want_flush(self, feed: str, expected_number: int) -> int:
        """Say that a feed is to commit what it holds."""
        with self._database.writing() as connection:
            new = self._kept(connection, _FLUSHES, Flushes).after(feed, expected_number)
            self._keep(connection, _FLUSHES, new)
        return new.number

    def endings(self) -> Endings:
        """Return what tables are to forget."""
        with self._database.reading() as connection:
            return self._kept(connection, _ENDINGS, Endings)

    def change_endings(
        self, announced: Sequence[Ending], ended: Collection[str], expected_number: int
    ) -> int:
        """Add some of them, and remove others."""
        with self._database.writing() as connection:
            before = self._kept(connection, _ENDINGS, Endings)
            new = before.after(announced, ended, expected_number)
            self._keep(connection, _ENDINGS, new)
        return new.number

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        self._database.close()

    def _find(self, kind: DefinitionKind, name: str) -> StoredDefinition | None:
        with self._database.reading() as connection:
            return self._row(connection, kind, name)

    def _apply(
        self,
        connection: sqlite3.Connection,
        change: Put | Drop | Want | NoteFailure,
        number: int = 0,
    ) -> StoredDefinition:
        new = after(self._row(connection, *change.key), change, number)
        failure: tuple[str | None, str | None, int | None] = (None, None, None)
        if new.failure is not None:
            failure = (new.failure.code, new.failure.reason, new.failure.version)
        values = (new.version, new.revision, new.id, new.body, new.wanted)
        connection.execute(_WRITE, (*change.key, *values, *failure))
        return new

    def _row(
        self, connection: sqlite3.Connection, kind: DefinitionKind, name: str
    ) -> StoredDefinition | None:
        row = connection.execute(f"{_ROWS} WHERE kind = ? AND name = ?", (kind, name)).fetchone()
        return None if row is None else self._stored(row)

    def _stored(self, row: Sequence[Any]) -> StoredDefinition:
        _, _, version, revision, id_, body, wanted, code, reason, failed_version, is_whole = row
        if not is_whole:
            raise damaged(self._database.path, "a definition contradicts its checksum")
        return StoredDefinition(
            version=version,
            revision=revision,
            id=id_,
            body=body,
            wanted=wanted,
            failure=None if code is None else FeedFailure(code, reason, failed_version),
        )

    def _kept(self, connection: sqlite3.Connection, where: tuple[str, str], type_: type[T]) -> T:
        """Return what a table of one row holds; that of nothing, if it is not there."""
        row = connection.execute(_READ_ROW.format(*where)).fetchone()
        if row is None:
            return type_()
        encoded, is_whole = row
        if not is_whole:
            raise damaged(self._database.path, f"`{where[1]}` contradicts its checksum")
        return msgspec.json.decode(encoded, type=type_)

    def _keep(
        self, connection: sqlite3.Connection, where: tuple[str, str], value: Flushes | Endings
    ) -> None:
        connection.execute(_WRITE_ROW.format(where[0]), (msgspec.json.encode(value),))

    def _number(self, connection: sqlite3.Connection) -> int:
        row = connection.execute(_NUMBER).fetchone()
        if row is None:
            raise damaged(self._database.path, "the registry's number is gone")
        number, is_whole = row
        if not is_whole:
            raise damaged(self._database.path, "the registry's number contradicts its checksum")
        return int(number)
