"""Files that wait, and batches, in one SQLite file."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import msgspec

from lakebed.backends.local.kept_database import KeptDatabase
from lakebed.backends.local.sqlite_database import SqliteDatabase, damaged
from lakebed.errors import ConflictError
from lakebed.model.names import Micros, TableId
from lakebed.ports.file_batches import (
    BATCHES_MAX,
    Batch,
    BatchHead,
    Refusal,
    SubmitCounts,
    SubmittedFile,
    check_batch,
    check_files,
    head_after,
)

_FORMAT = 2
_SCHEMA = """
CREATE TABLE pending (
    lake_table TEXT NOT NULL,
    name TEXT NOT NULL,
    version TEXT NOT NULL,
    size INTEGER NOT NULL,
    seen INTEGER NOT NULL,
    checksum INTEGER NOT NULL,
    PRIMARY KEY (lake_table, name, version)
) STRICT, WITHOUT ROWID;
CREATE INDEX pending_by_age ON pending (lake_table, seen, name);
CREATE TABLE taken (
    lake_table TEXT NOT NULL,
    digest BLOB NOT NULL,
    number INTEGER NOT NULL,
    until INTEGER NOT NULL,
    is_free INTEGER NOT NULL DEFAULT 0,
    checksum INTEGER,
    PRIMARY KEY (lake_table, digest)
) STRICT, WITHOUT ROWID;
CREATE TABLE batch (
    lake_table TEXT NOT NULL,
    number INTEGER NOT NULL,
    planned INTEGER NOT NULL,
    body BLOB NOT NULL,
    checksum INTEGER NOT NULL,
    PRIMARY KEY (lake_table, number)
) STRICT, WITHOUT ROWID;
CREATE TABLE head (
    lake_table TEXT PRIMARY KEY,
    planned INTEGER NOT NULL,
    closed INTEGER NOT NULL,
    ended INTEGER NOT NULL,
    checksum INTEGER
) STRICT, WITHOUT ROWID"""
_SUMS = {
    "pending": "row_checksum(lake_table, name, version, size, seen)",
    "taken": "row_checksum(lake_table, digest, number, until, is_free)",
    "batch": "row_checksum(lake_table, number, planned, body)",
    "head": "row_checksum(lake_table, planned, closed, ended)",
}
_UPGRADES = {
    1: (
        "ALTER TABLE taken ADD COLUMN checksum INTEGER",
        "ALTER TABLE head ADD COLUMN checksum INTEGER",
        f"UPDATE taken SET checksum = {_SUMS['taken']}",  # noqa: S608 - constant texts
        f"UPDATE head SET checksum = {_SUMS['head']}",  # noqa: S608 - constant texts
    ),
}
_PENDING = """
SELECT name, size, version, seen,
    checksum IS row_checksum(lake_table, name, version, size, seen)
FROM pending WHERE lake_table = ? ORDER BY seen, name LIMIT ?"""
_PUT = "INSERT OR IGNORE INTO pending VALUES (?1, ?2, ?3, ?4, ?5, row_checksum(?1, ?2, ?3, ?4, ?5))"
_TAKEN = f"""
SELECT until > ?3 AND NOT is_free, checksum IS {_SUMS["taken"]}
FROM taken WHERE lake_table = ?1 AND digest = ?2"""  # noqa: S608 - constant texts
_TAKE = """
INSERT INTO taken VALUES (?1, ?2, ?3, ?4, 0, row_checksum(?1, ?2, ?3, ?4, 0))
ON CONFLICT DO UPDATE SET
    number = excluded.number, until = excluded.until, is_free = 0, checksum = excluded.checksum
    WHERE number < excluded.number"""
_FREE = """
UPDATE taken SET is_free = 1, checksum = row_checksum(lake_table, digest, number, until, 1)
WHERE lake_table = ? AND digest = ? AND number = ?"""
_REMOVE = "DELETE FROM pending WHERE lake_table = ? AND name = ? AND version = ? AND seen = ?"
_BATCH = """
SELECT body, checksum IS row_checksum(lake_table, number, planned, body)
FROM batch WHERE lake_table = ? AND number = ?"""
_BATCHES = """
SELECT body, checksum IS row_checksum(lake_table, number, planned, body)
FROM batch WHERE lake_table = ? AND number < ? ORDER BY number DESC LIMIT ?"""
_HEAD = f"""
SELECT planned, closed, ended, checksum IS {_SUMS["head"]}
FROM head WHERE lake_table = ?"""  # noqa: S608 - constant texts
_PUT_HEAD = "INSERT OR REPLACE INTO head VALUES (?1, ?2, ?3, ?4, row_checksum(?1, ?2, ?3, ?4))"
_PUT_BATCH = "INSERT OR REPLACE INTO batch VALUES (?1, ?2, ?3, ?4, row_checksum(?1, ?2, ?3, ?4))"
_DROP = (
    "DELETE FROM pending WHERE lake_table = ?",
    "DELETE FROM taken WHERE lake_table = ?",
    "DELETE FROM batch WHERE lake_table = ?",
    "DELETE FROM head WHERE lake_table = ?",
)
_TABLES = """
SELECT lake_table FROM pending UNION SELECT lake_table FROM head WHERE planned > ended ORDER BY 1"""

_decode = msgspec.msgpack.Decoder(Batch).decode


class SqliteFileBatches:
    """Files that wait, and batches, in the file `batches.sqlite` of a folder."""

    def __init__(self, root: str | os.PathLike[str]) -> None:
        path = Path(root) / "batches.sqlite"
        self._database = KeptDatabase(
            SqliteDatabase(path, _SCHEMA, format=_FORMAT, upgrades=_UPGRADES, is_moved=True),
            _SUMS,
            what="batches",
            instead="submit what was not taken in",
        )

    def submit(self, table: TableId, files: Sequence[SubmittedFile]) -> SubmitCounts:
        """Let files wait."""
        check_files(files)
        added = 0
        with self._database.writing() as connection:
            for file in files:
                if not self._is_taken(connection, table, file):
                    values = (table, file.name, file.version, file.size, file.seen)
                    added += connection.execute(_PUT, values).rowcount
        return SubmitCounts(added, len(files) - added)

    def pending(self, table: TableId, *, files_max: int) -> list[SubmittedFile]:
        """Return files that wait."""
        if not self._database.exists():
            return []
        with self._database.reading() as connection:
            rows = connection.execute(_PENDING, (table, files_max)).fetchall()
        if not all(is_whole for *_, is_whole in rows):
            raise damaged(self._database.path, "a file that waits contradicts its checksum")
        return [SubmittedFile(name, size, ver, Micros(seen)) for name, size, ver, seen, _ in rows]

    def tables(self) -> list[TableId]:
        """Return the tables with something to do."""
        if not self._database.exists():
            return []
        with self._database.reading() as connection:
            return [TableId(row[0]) for row in connection.execute(_TABLES)]

    def rest(self, table: TableId) -> None:
        """Nothing: the list is made when it is asked for."""

    def head(self, table: TableId) -> BatchHead:
        """Return how far a table's batches are."""
        if not self._database.exists():
            return BatchHead()
        with self._database.reading() as connection:
            return self._head(connection, table)

    def plan(self, table: TableId, batch: Batch, head: BatchHead) -> None:
        """Put the next batch."""
        check_batch(batch, head)
        with self._database.writing() as connection:
            found = self._head(connection, table)
            if found[:2] != head[:2]:
                raise ConflictError("another batch was planned", table=table, number=batch.number)
            _put_batch(connection, table, batch)
            _put_head(connection, table, head_after(batch, found))

    def take(self, table: TableId, batch: Batch, *, until: Micros) -> None:
        """Remember the files of a batch as taken."""
        rows = [(table, file.digest, batch.number, until) for file in batch.files]
        with self._database.writing() as connection:
            connection.executemany(_TAKE, rows)

    def remove(self, table: TableId, batch: Batch) -> None:
        """Let the files of a batch wait no more."""
        rows = [(table, file.name, file.version, file.seen) for file in batch.files]
        with self._database.writing() as connection:
            connection.executemany(_REMOVE, rows)

    def finish(self, table: TableId, number: int, *, sent: Micros) -> None:
        """Close the open batch."""
        with self._database.writing() as connection:
            head = self._head(connection, table)
            batch = self._batch(connection, table, number)
            if head.planned == number == head.closed + 1 and batch is not None:
                _put_batch(connection, table, msgspec.structs.replace(batch, sends=1, sent=sent))
                _put_head(connection, table, head._replace(closed=number))

    def sent_again(self, table: TableId, number: int, *, sends: int, sent: Micros) -> None:
        """Tell that a job was sent again."""
        with self._database.writing() as connection:
            batch = self._batch(connection, table, number)
            if batch is not None and batch.sends < sends:
                _put_batch(
                    connection, table, msgspec.structs.replace(batch, sends=sends, sent=sent)
                )

    def refuse(
        self, table: TableId, number: int, refused: Sequence[Refusal], *, known: int
    ) -> None:
        """Leave more files out of a batch."""
        with self._database.writing() as connection:
            batch = self._batch(connection, table, number)
            if batch is None or len(batch.refused) != known:
                raise ConflictError("another run refused files", table=table, number=number)
            every = (*batch.refused, *refused)
            _put_batch(connection, table, msgspec.structs.replace(batch, refused=every))

    def end(self, table: TableId, number: int, *, free: Sequence[SubmittedFile]) -> None:
        """Tell that a batch is at an end."""
        rows = [(table, file.digest, number) for file in free]
        with self._database.writing() as connection:
            connection.executemany(_FREE, rows)
            head = self._head(connection, table)
            if head.ended < number <= head.closed:
                _put_head(connection, table, head._replace(ended=number))

    def batch(self, table: TableId, number: int) -> Batch | None:
        """Return a batch."""
        if not self._database.exists():
            return None
        with self._database.reading() as connection:
            return self._batch(connection, table, number)

    def batches(
        self, table: TableId, *, below: int | None = None, batches_max: int = BATCHES_MAX
    ) -> list[Batch]:
        """Return batches, the newest first."""
        if not self._database.exists():
            return []
        values = (table, 1 << 62 if below is None else below, batches_max)
        with self._database.reading() as connection:
            rows = connection.execute(_BATCHES, values)
            return [self._decoded(*row) for row in rows]

    def forget(self, table: TableId, *, before: Micros, now: Micros) -> None:
        """Drop old batches, and what is not remembered any more."""
        with self._database.writing() as connection:
            ended = self._head(connection, table).ended
            old = "DELETE FROM batch WHERE lake_table = ? AND number <= ? AND planned < ?"
            connection.execute(old, (table, ended, before))
            connection.execute(
                "DELETE FROM taken WHERE lake_table = ? AND until <= ?", (table, now)
            )

    def drop(self, table: TableId) -> None:
        """Drop all of a table."""
        with self._database.writing() as connection:
            for statement in _DROP:
                connection.execute(statement, (table,))

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        self._database.close()

    def _is_taken(self, connection: sqlite3.Connection, table: str, file: SubmittedFile) -> bool:
        row = connection.execute(_TAKEN, (table, file.digest, file.seen)).fetchone()
        if row is not None and not row[1]:
            raise damaged(self._database.path, "a file that was taken contradicts its checksum")
        return row is not None and bool(row[0])

    def _head(self, connection: sqlite3.Connection, table: str) -> BatchHead:
        row = connection.execute(_HEAD, (table,)).fetchone()
        if row is not None and not row[3]:
            raise damaged(self._database.path, "the head of batches contradicts its checksum")
        return BatchHead() if row is None else BatchHead(*row[:3])

    def _batch(self, connection: sqlite3.Connection, table: str, number: int) -> Batch | None:
        row = connection.execute(_BATCH, (table, number)).fetchone()
        return None if row is None else self._decoded(*row)

    def _decoded(self, body: bytes, is_whole: int) -> Batch:
        if not is_whole:
            raise damaged(self._database.path, "a batch contradicts its checksum")
        return _decode(body)


def _put_batch(connection: sqlite3.Connection, table: str, batch: Batch) -> None:
    body = msgspec.msgpack.encode(batch)
    connection.execute(_PUT_BATCH, (table, batch.number, batch.planned, body))


def _put_head(connection: sqlite3.Connection, table: str, head: BatchHead) -> None:
    connection.execute(_PUT_HEAD, (table, *head))
