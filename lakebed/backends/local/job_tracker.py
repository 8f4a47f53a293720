"""Reports of jobs in one SQLite file. Hints: the last ones may be lost with the power."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from lakebed.backends.local.sqlite_database import SqliteDatabase
from lakebed.model.names import JobId, Micros, TableId
from lakebed.ports.job_tracker import JobReport

_SCHEMA = """
CREATE TABLE report (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    table_id TEXT NOT NULL,
    job TEXT NOT NULL,
    at INTEGER NOT NULL,
    body BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX report_by_job ON report (table_id, job);
CREATE INDEX report_by_time ON report (table_id, at, number);
CREATE INDEX report_by_age ON report (at)"""
_FIND = "SELECT at, body FROM report WHERE table_id = ? AND job = ?"
_REMOVE = "DELETE FROM report WHERE table_id = ? AND job = ?"
_REPORT = "INSERT INTO report (table_id, job, at, body) VALUES (?, ?, ?, ?)"
_RECENT = "SELECT body FROM report WHERE table_id = ? ORDER BY at DESC, number DESC LIMIT ?"

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(JobReport).decode


class SqliteJobTracker:
    """Each job's newest report, in the file `jobs.sqlite` of a folder."""

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self._database = SqliteDatabase(Path(root) / "jobs.sqlite", _SCHEMA, durable=False)

    def report(self, report: JobReport) -> None:
        """Remember it, unless a newer one of the job is known."""
        job = report.table, report.job
        with self._database.transaction() as connection:
            found = connection.execute(_FIND, job).fetchone()
            if found is None or found[0] <= report.at:
                connection.execute(_REMOVE, job)
                connection.execute(_REPORT, (*job, report.at, _encode(report)))

    def last(self, table: TableId, job: JobId) -> JobReport | None:
        """Return the newest report of a job."""
        with self._database.reading() as connection:
            found = connection.execute(_FIND, (table, job)).fetchone()
        return None if found is None else _decode(found[1])

    def recent(self, table: TableId, *, reports_max: int) -> list[JobReport]:
        """Return the newest report of each job, newest first."""
        with self._database.reading() as connection:
            rows = connection.execute(_RECENT, (table, reports_max)).fetchall()
        return [_decode(body) for (body,) in rows]

    def forget(self, *, before: Micros) -> None:
        """Drop reports that are older."""
        with self._database.writing() as connection:
            connection.execute("DELETE FROM report WHERE at < ?", (before,))

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        self._database.close()
