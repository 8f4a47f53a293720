"""Reports of jobs in one SQLite file. Hints: the last ones may be lost with the power."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Collection, Sequence
from pathlib import Path

import msgspec

from lakebed.backends.local.sqlite_database import SqliteDatabase
from lakebed.model.names import JobId, Micros, TableId
from lakebed.ports.job_tracker import (
    BEGINNING,
    JOB_EVENTS,
    JobEvent,
    JobReport,
    TaskReport,
    renews,
    replaces,
    report_in,
    reports_in,
)

_FORMAT = 3
_REPORTS = """
CREATE TABLE report (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    table_id TEXT NOT NULL,
    job TEXT NOT NULL,
    at INTEGER NOT NULL,
    event TEXT NOT NULL,
    newest INTEGER NOT NULL,
    body BLOB NOT NULL,
    checksum INTEGER NOT NULL
) STRICT"""
_BY_JOB = "CREATE INDEX report_by_job ON report (table_id, job, at, number)"
_BY_EVENT = "CREATE INDEX report_by_event ON report (table_id, event, at) WHERE newest"
_BY_AGE = "CREATE INDEX report_by_age ON report (at)"
_TASKS = """
CREATE TABLE task (
    task TEXT PRIMARY KEY,
    at INTEGER NOT NULL,
    body BLOB NOT NULL
) STRICT, WITHOUT ROWID"""
_SCHEMA = (_REPORTS, _BY_JOB, _BY_EVENT, _BY_AGE, _TASKS)
_UPGRADES = {
    1: ("DROP TABLE report", *_SCHEMA, "ALTER TABLE report DROP COLUMN checksum"),
    2: (
        "ALTER TABLE report ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0",
        "UPDATE report SET checksum = row_checksum(table_id, job, at, event, body)",
    ),
}
"""Format 1 kept one report of each job, and did not say which event; as hints they may go."""

_NEWEST = """
SELECT at, body, checksum = row_checksum(table_id, job, at, event, body)
FROM report WHERE table_id = ? AND job = ? AND newest"""
_OUTDATE = "UPDATE report SET newest = 0 WHERE table_id = ? AND job = ? AND newest"
_WHOLE = "checksum = row_checksum(table_id, job, at, event, body)"
"""Reports that contradict their checksums are left out: they are hints, and some may be lost."""
_OF_MOMENT = """
SELECT number, body FROM report WHERE table_id = ? AND job = ? AND at = ?"""
_RENEW = """
UPDATE report SET body = ?2, checksum = row_checksum(table_id, job, at, event, ?2)
WHERE number = ?1"""
_REPORT = """
INSERT INTO report (table_id, job, at, event, newest, body, checksum)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, row_checksum(?1, ?2, ?3, ?4, ?6))"""
_HISTORY = f"""
SELECT body FROM report WHERE table_id = ? AND job = ? AND {_WHOLE}
ORDER BY at, number"""  # noqa: S608 - constant texts
_FIND = f"""
SELECT body FROM report WHERE newest AND table_id = ? AND event = ? AND at >= ? AND at < ?
AND {_WHOLE} ORDER BY at DESC, number DESC LIMIT ?"""  # noqa: S608 - constant texts
_OLD_REJECTIONS = "SELECT number, body FROM report WHERE at < ? AND event = 'rejected'"
_FORGET = """
DELETE FROM report WHERE at < ? AND number NOT IN (SELECT value FROM json_each(?))"""
_TASK = """
INSERT INTO task VALUES (?, ?, ?)
ON CONFLICT (task) DO UPDATE SET at = excluded.at, body = excluded.body
WHERE excluded.at >= task.at"""
_END_OF_TIME = 1 << 62

_encode = msgspec.msgpack.Encoder().encode
_decode_task = msgspec.msgpack.Decoder(TaskReport).decode


class SqliteJobTracker:
    """Reports, in the file `jobs.sqlite` of a folder."""

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self._database = SqliteDatabase(
            Path(root) / "jobs.sqlite",
            ";".join(_SCHEMA),
            format=_FORMAT,
            upgrades=_UPGRADES,
            durable=False,
        )

    def report(self, report: JobReport) -> None:
        """Remember it; it is the newest unless a newer one of the job is known."""
        self.report_many((report,))

    def report_many(self, reports: Sequence[JobReport]) -> None:
        """Remember them all, or none."""
        with self._database.writing() as connection:
            for report in reports:
                job, body = (report.table, report.job), _encode(report)
                if _is_known(connection, report, body):
                    continue
                found = connection.execute(_NEWEST, job).fetchone()
                newest = found is None or not found[2] or _replaces(report, *found[:2])
                if newest:
                    connection.execute(_OUTDATE, job)
                connection.execute(_REPORT, (*job, report.at, report.event, newest, body))

    def last(self, table: TableId, job: JobId) -> JobReport | None:
        """Return the newest report of a job."""
        with self._database.reading() as connection:
            found = connection.execute(_NEWEST, (table, job)).fetchone()
        if found is None or not found[2]:
            return None
        return report_in(found[1]) or next(reversed(self.history(table, job)), None)

    def history(self, table: TableId, job: JobId) -> list[JobReport]:
        """Return all reports of a job, oldest first."""
        with self._database.reading() as connection:
            rows = connection.execute(_HISTORY, (table, job)).fetchall()
        return reports_in(body for (body,) in rows)

    def find(
        self,
        table: TableId,
        *,
        events: Collection[JobEvent] = JOB_EVENTS,
        since: Micros = BEGINNING,
        until: Micros | None = None,
        reports_max: int,
    ) -> list[JobReport]:
        """Return the newest report of each job whose event is one of `events`, newest first."""
        end = _END_OF_TIME if until is None else until
        found: list[JobReport] = []
        with self._database.reading() as connection:
            for event in events:
                wanted = (table, event, since, end, reports_max)
                found += reports_in(body for (body,) in connection.execute(_FIND, wanted))
        return sorted(found, key=lambda r: -r.at)[:reports_max]

    def report_task(self, report: TaskReport) -> None:
        """Remember how far a task has come."""
        with self._database.writing() as connection:
            connection.execute(_TASK, (report.task, report.at, _encode(report)))

    def tasks(self, *, reports_max: int) -> list[TaskReport]:
        """Return the newest report of each task, newest first."""
        query = "SELECT body FROM task ORDER BY at DESC LIMIT ?"
        with self._database.reading() as connection:
            rows = connection.execute(query, (reports_max,)).fetchall()
        return [_decode_task(body) for (body,) in rows]

    def forget(self, *, before: Micros) -> None:
        """Drop reports that are older."""
        with self._database.writing() as connection:
            kept = [
                number
                for number, body in connection.execute(_OLD_REJECTIONS, (before,))
                if (report := report_in(body)) is not None and report.kept_from >= before
            ]
            connection.execute(_FORGET, (before, json.dumps(kept)))
            connection.execute("DELETE FROM task WHERE at < ?", (before,))

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        self._database.close()


def _is_known(connection: sqlite3.Connection, report: JobReport, body: bytes) -> bool:
    """Return whether a report is kept already. One that renews a kept report takes its place
    here."""
    moment = (report.table, report.job, report.at)
    for number, known_body in connection.execute(_OF_MOMENT, moment).fetchall():
        known = report_in(known_body)
        if known is not None and renews(report, known):
            if body != known_body:
                connection.execute(_RENEW, (number, body))
            return True
    return False


def _replaces(report: JobReport, at: Micros, body: bytes) -> bool:
    """Return whether a report replaces the kept one; one of an unknown form if that is no newer."""
    newest = report_in(body)
    return at <= report.at if newest is None else replaces(report, newest)
