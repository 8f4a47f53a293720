"""Reports of a lake by their names: the same services as `status`, `jobs` and the like, in rows."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice

from lakebed.bootstrap.app import App
from lakebed.bootstrap.object_locations import urls_of
from lakebed.bootstrap.reporting.batch_report import BATCHES
from lakebed.bootstrap.reporting.report_kinds import AskedReport, Failed, ReportKind, since
from lakebed.bootstrap.reporting.usage_reports import COSTS, QUERIES
from lakebed.errors import InvalidError, LakebedError, did_you_mean
from lakebed.inspection import report_rows
from lakebed.inspection.report import Report
from lakebed.inspection.report_rows import Row
from lakebed.model.keys import KeyValue, key_value_text
from lakebed.model.names import TableId, TableName
from lakebed.model.schema import Field
from lakebed.ports.job_tracker import NO_TABLE, JobReport
from lakebed.ports.table_registry import TableEntry
from lakebed.query.table_files import TableFile, table_files
from lakebed.tasks.failed_work import FailedWork
from lakebed.tasks.job_pages import PAGE, each_job

LETTERS_MAX = 1_000
NAMELESS = TableName("")
"""The table name in reports of jobs that name no table, or one that does not exist."""


def report_of(app: App, name: str, asked: AskedReport) -> Report:
    """Return a report.

    Raises:
        InvalidError: there is no such report, or it is not one of tables. TableMissingError: with
            the nearest known name.
    """
    kind = REPORTS.get(name)
    if kind is None:
        raise InvalidError(
            "there is no such report", report=name, hint=did_you_mean(name, REPORTS, what="report")
        )
    if asked.table is not None and not kind.of_tables:
        hint = f"leave the table out: `lakebed report {name}`"
        raise InvalidError("this report is of the whole lake", report=name, hint=hint)
    failed: list[str] = []
    rows = list(islice(kind.rows(app, asked, failed.append), asked.rows_max))
    return Report(name=name, columns=kind.columns, rows=rows, failed=tuple(failed))


def _status(app: App, asked: AskedReport, failed: Failed) -> Iterator[Row]:
    found, failures = app.inspection.status().run(asked.table)
    yield from map(report_rows.status_row, found)
    _add_failures(failures, failed)


def _partitions(app: App, asked: AskedReport, failed: Failed) -> Iterator[Row]:
    found, failures = app.inspection.status().run(asked.table)
    _add_failures(failures, failed)
    for status in found:
        table = app.catalog.find(status.name)
        with table.head.reading() as state:
            schema, settings = state.schema(), state.settings()
        points = app.split_leaves.preview(table)
        yield from report_rows.partition_rows(status, schema, settings, points)


def _files(app: App, asked: AskedReport, failed: Failed) -> Iterator[Row]:
    url_of = urls_of(app.objects)
    for entry in app.catalog.entries(asked.table):
        try:
            table = app.catalog.opened(entry)
            found = table_files(table, url_of, past=app.past)
            with table.head.reading() as state:
                keys = state.schema().row_keys
        except LakebedError as error:
            failed(f"{entry.name}: {error.code()}: {error}")
            continue
        yield from (_file_row(entry, keys, one) for one in found)


def _file_row(entry: TableEntry, keys: Sequence[Field], one: TableFile) -> Row:
    least, most = (_key_text(keys, values) for values in (one.min, one.max))
    return (entry.name, one.path, least, most, one.rows, one.exact, one.bytes, one.whole)


def _key_text(keys: Sequence[Field], values: tuple[KeyValue, ...] | None) -> str | None:
    if values is None:
        return None
    pairs = zip(keys, values, strict=False)
    return ",".join(key_value_text(key, value) for key, value in pairs)


def _jobs(app: App, asked: AskedReport, _: Failed) -> Iterator[Row]:
    """Yield jobs, newest first, and of all tables those that name no table, too."""
    begin = since(app, asked)
    entries = app.catalog.entries(asked.table)
    tables = [(entry.id, entry.name) for entry in entries]
    if asked.table is None:
        tables.append((NO_TABLE, NAMELESS))
    page = min(asked.rows_max, PAGE)

    def of(id_: TableId, name: TableName) -> Iterator[tuple[TableName, JobReport]]:
        return ((name, one) for one in each_job(app.tracker, id_, since=begin, page=page))

    newest = heapq.merge(*(of(*table) for table in tables), key=lambda found: -found[1].at)
    yield from report_rows.job_rows(newest)


def _tasks(app: App, asked: AskedReport, _: Failed) -> Iterator[Row]:
    begin = since(app, asked)
    found = app.tracker.tasks(reports_max=asked.rows_max)
    return report_rows.task_rows(one for one in found if one.at >= begin)


def _letters(app: App, asked: AskedReport, _: Failed) -> Iterator[Row]:
    letters_max = min(asked.rows_max, LETTERS_MAX)
    found = app.inspection.dead_letters().show((), asked.table, letters_max=letters_max)
    return report_rows.letter_rows(found)


def _add_failures(failures: Iterable[FailedWork], failed: Failed) -> None:
    for one in failures:
        failed(f"{one.table}: {one.code}: {one.error}")


REPORTS: Mapping[str, ReportKind] = {
    "partitions": ReportKind(columns=report_rows.PARTITIONS, rows=_partitions),
    "files": ReportKind(columns=report_rows.FILES, rows=_files),
    "jobs": ReportKind(columns=report_rows.JOBS, rows=_jobs),
    "tasks": ReportKind(columns=report_rows.TASKS, rows=_tasks, of_tables=False),
    "dead-letters": ReportKind(columns=report_rows.DEAD_LETTERS, rows=_letters),
    "batches": BATCHES,
    "costs": COSTS,
    "queries": QUERIES,
    "status": ReportKind(columns=report_rows.STATUS, rows=_status),
}
"""A door: a room that knows something else of a lake adds its report here."""
