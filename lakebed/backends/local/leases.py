"""Beats and owners in one SQLite file."""

from __future__ import annotations

import os
from pathlib import Path

from lakebed.backends.local.sqlite_database import SqliteDatabase, damaged
from lakebed.ports.leases import (
    OWNERS_MAX,
    Owner,
    OwnerNumber,
    WorkerBeat,
    WorkerId,
    check_claim,
    check_report,
    check_worker,
)

_SCHEMA = """
CREATE TABLE worker (
    name TEXT PRIMARY KEY,
    counter INTEGER NOT NULL,
    report BLOB NOT NULL,
    checksum INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE owner (
    name TEXT PRIMARY KEY,
    number INTEGER NOT NULL,
    worker TEXT NOT NULL,
    checksum INTEGER NOT NULL
) STRICT, WITHOUT ROWID"""
_BEAT = """
INSERT INTO worker VALUES (?1, 1, ?2, row_checksum(?1, 1, ?2))
ON CONFLICT (name) DO UPDATE SET
    counter = counter + 1, report = ?2, checksum = row_checksum(name, counter + 1, ?2)"""
_BEATS = """
SELECT name, counter, report, checksum IS row_checksum(name, counter, report)
FROM worker ORDER BY name"""
_OWNERS = "SELECT name, number, worker, checksum IS row_checksum(name, number, worker) FROM owner"
_CLAIM = "INSERT OR REPLACE INTO owner VALUES (?1, ?2, ?3, row_checksum(?1, ?2, ?3))"
_RELEASE = """
UPDATE owner SET worker = '', checksum = row_checksum(name, number, '')
WHERE name = ? AND worker = ? AND number = ?"""


class SqliteLeases:
    """Beats and owners, in the file `leases.sqlite` of a folder."""

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self._database = SqliteDatabase(Path(root) / "leases.sqlite", _SCHEMA)

    def beat(self, worker: WorkerId, report: bytes) -> None:
        """Say that a worker lives."""
        check_worker(worker)
        check_report(report)
        with self._database.writing_once() as execute:
            execute(_BEAT, (worker, report))

    def workers(self) -> list[WorkerBeat]:
        """Return the last beat of each worker."""
        with self._database.reading() as connection:
            rows = connection.execute(_BEATS).fetchall()
        if not all(is_whole for *_, is_whole in rows):
            raise damaged(self._database.path, "a beat contradicts its checksum")
        return [WorkerBeat(WorkerId(name), counter, report) for name, counter, report, _ in rows]

    def leave(self, worker: WorkerId) -> None:
        """Take a worker from the list."""
        check_worker(worker)
        with self._database.writing_once() as execute:
            execute("DELETE FROM worker WHERE name = ?", (worker,))

    def claim(self, name: str, worker: WorkerId, at_least: int) -> OwnerNumber:
        """Make a worker the owner."""
        check_claim(name, worker, at_least)
        with self._database.writing() as connection:
            row = connection.execute(f"{_OWNERS} WHERE name = ?", (name,)).fetchone()
            before = 0 if row is None else self._owner(*row).number
            number = OwnerNumber(max(at_least, before + 1))
            connection.execute(_CLAIM, (name, number, worker))
        return number

    def release(self, name: str, worker: WorkerId, number: OwnerNumber) -> None:
        """Give up what a claim got."""
        check_claim(name, worker, number)
        with self._database.writing_once() as execute:
            execute(_RELEASE, (name, worker, number))

    def owner(self, name: str) -> Owner | None:
        """Return who owns it."""
        with self._database.reading() as connection:
            row = connection.execute(f"{_OWNERS} WHERE name = ?", (name,)).fetchone()
        return None if row is None else self._owner(*row)

    def owners(
        self, *, prefix: str = "", after: str = "", owners_max: int = OWNERS_MAX
    ) -> list[Owner]:
        """Return all that was ever claimed."""
        where = "name >= ?1 AND name > ?2 AND substr(name, 1, ?3) = ?1 ORDER BY name LIMIT ?4"
        with self._database.reading() as connection:
            values = (prefix, after, len(prefix), owners_max)
            rows = connection.execute(f"{_OWNERS} WHERE {where}", values).fetchall()
        return [self._owner(*row) for row in rows]

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        self._database.close()

    def _owner(self, name: str, number: int, worker: str, is_whole: int) -> Owner:
        if not is_whole:
            raise damaged(self._database.path, "an owner contradicts its checksum")
        return Owner(name, OwnerNumber(number), WorkerId(worker))
