"""The SQLite tables that hold a table's state, and how they are opened.

Sizes matter: with one reference a file takes under 200 bytes, so that a million files are one
database that a small lambda can open. `file_references` lies in the order (partition, file), so
that one leaf is one short scan.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

STATE_FORMAT = 1
CACHE_KIB = 32 * 1024
"""Pages SQLite may keep in memory for one table: bounded by bytes, whatever the number of files."""

LAYOUT = """
CREATE TABLE head(
    only INTEGER PRIMARY KEY CHECK (only = 1), number INTEGER NOT NULL, at INTEGER NOT NULL,
    floor INTEGER NOT NULL, generation INTEGER NOT NULL, root INTEGER NOT NULL,
    partition_next INTEGER NOT NULL, dropped INTEGER NOT NULL,
    schema TEXT NOT NULL, settings TEXT NOT NULL);
CREATE TABLE commits(
    id TEXT PRIMARY KEY, digest BLOB NOT NULL, number INTEGER NOT NULL, base INTEGER NOT NULL,
    user INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE entry_times(number INTEGER PRIMARY KEY, at INTEGER NOT NULL);
CREATE TABLE partitions(
    id INTEGER PRIMARY KEY, parent INTEGER, dimension INTEGER NOT NULL, point BLOB NOT NULL,
    left INTEGER, right INTEGER, rows_unsplittable INTEGER NOT NULL DEFAULT 0);
CREATE TABLE file_references(
    partition INTEGER NOT NULL, file BLOB NOT NULL, rows INTEGER NOT NULL, exact INTEGER NOT NULL,
    min BLOB NOT NULL, max BLOB, size INTEGER NOT NULL, tail_offset INTEGER NOT NULL,
    checksum INTEGER NOT NULL, tail_checksum INTEGER NOT NULL, job INTEGER,
    PRIMARY KEY (partition, file)) WITHOUT ROWID;
CREATE INDEX references_by_file ON file_references(file);
CREATE INDEX references_by_job ON file_references(job) WHERE job IS NOT NULL;
CREATE TABLE jobs(
    key INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, partition INTEGER NOT NULL,
    number INTEGER NOT NULL, at INTEGER NOT NULL);
CREATE TABLE garbage(
    file BLOB PRIMARY KEY, number INTEGER NOT NULL, at INTEGER NOT NULL, size INTEGER NOT NULL
    ) WITHOUT ROWID;
CREATE TABLE pins(id TEXT PRIMARY KEY, number INTEGER NOT NULL, until INTEGER NOT NULL) WITHOUT
ROWID; CREATE TABLE positions(
    name TEXT PRIMARY KEY, value BLOB NOT NULL, owner INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO head VALUES (1, 0, 0, 0, 0, 0, 1, 0, '', '{}');
"""

DIGESTED = (
    "head",
    "commits",
    "entry_times",
    "partitions",
    "file_references",
    "jobs",
    "garbage",
    "pins",
    "positions",
)


def open_memory() -> sqlite3.Connection:
    """Return a new, empty state in memory."""
    connection = _connect(":memory:")
    connection.execute("PRAGMA journal_mode=MEMORY")
    _lay_out(connection)
    return connection


def open_cache(path: Path) -> sqlite3.Connection:
    """Return the state in a cache file, new and empty if there was none or of another format.

    Several processes may share the file (protocol H27); deleting it is always safe.
    """
    connection = _connect(str(path))
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=NORMAL")
    connection.execute("BEGIN IMMEDIATE")
    try:
        if connection.execute("PRAGMA user_version").fetchone()[0] != STATE_FORMAT:
            _drop_all(connection)
            _lay_out(connection)
        connection.execute("COMMIT")
    except BaseException:
        connection.rollback()
        connection.close()
        raise
    return connection


def _connect(path: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        path, isolation_level=None, timeout=60, check_same_thread=False, cached_statements=256
    )
    connection.execute(f"PRAGMA cache_size=-{CACHE_KIB}")
    return connection


def _lay_out(connection: sqlite3.Connection) -> None:
    for statement in LAYOUT.split(";"):
        if statement.strip():
            connection.execute(statement)
    connection.execute(f"PRAGMA user_version={STATE_FORMAT}")


def _drop_all(connection: sqlite3.Connection) -> None:
    names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    for (name,) in names:
        assert name.isidentifier(), "only tables that some Lakebed made"
        connection.execute(f"DROP TABLE {name}")
