"""The report of batches of submitted files."""

from __future__ import annotations

from collections.abc import Iterator

from lakebed.bootstrap.app import App
from lakebed.bootstrap.batching import batch_listing
from lakebed.bootstrap.reporting.report_kinds import AskedReport, Failed, ReportKind, since
from lakebed.errors import LakebedError
from lakebed.ingest.batch_listing import BatchListing, BatchReport
from lakebed.inspection.report import ReportColumn
from lakebed.inspection.report_rows import Row
from lakebed.model.names import Micros, TableName
from lakebed.statestore.open_table import OpenTable

PAGE = 1_000
"""Batches that are looked up at once."""
COLUMNS = (
    ReportColumn("table", "text", "table"),
    ReportColumn("batch", "count", "batch"),
    ReportColumn("planned", "time", "planned"),
    ReportColumn("files", "count", "files"),
    ReportColumn("bytes", "count", "bytes"),
    ReportColumn("waited_seconds", "count", "waited"),
    ReportColumn("target", "text", "to"),
    ReportColumn("state", "text", "state"),
    ReportColumn("number", "count", "entry"),
    ReportColumn("refused", "count", "refused"),
    ReportColumn("sends", "count"),
    ReportColumn("job", "text", "job"),
    ReportColumn("reason", "text", "reason"),
)


def _rows(app: App, asked: AskedReport, failed: Failed) -> Iterator[Row]:
    """Yield batches by table, the newest first."""
    listing, begin = batch_listing(app), since(app, asked)
    at_once = min(PAGE, asked.rows_max)
    for entry in app.catalog.entries(asked.table):
        try:
            table = app.catalog.opened(entry)
            for one in _of(listing, table, begin, at_once=at_once):
                yield _row(entry.name, one)
        except LakebedError as error:
            failed(f"{entry.name}: {error.code()}: {error}")


def _of(
    listing: BatchListing, table: OpenTable, begin: Micros, *, at_once: int
) -> Iterator[BatchReport]:
    """Yield batches of a table that were planned since a time. at_once: that are looked up."""
    below: int | None = None
    while page := listing.batches(table, below=below, limit=at_once):
        for one in page:
            if one.planned < begin:
                return
            yield one
        below = page[-1].batch


def _row(table: TableName, one: BatchReport) -> Row:
    return (
        table,
        one.batch,
        one.planned,
        one.files,
        one.bytes,
        one.oldest_seconds,
        one.target,
        one.state,
        one.number or None,
        len(one.refused),
        one.sends,
        one.job,
        one.last,
    )


BATCHES = ReportKind(columns=COLUMNS, rows=_rows)
