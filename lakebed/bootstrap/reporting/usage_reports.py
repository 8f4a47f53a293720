"""Reports of the ledger: costs by day, queries by hour."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from lakebed.bootstrap.app import App
from lakebed.bootstrap.paying.costs import deleted_days, usage_entries
from lakebed.bootstrap.reporting.report_kinds import AskedReport, Failed, ReportKind, since
from lakebed.costs.prices import packaged_prices
from lakebed.costs.shown_counters import READ, REQUESTS, WRITTEN
from lakebed.costs.spent import HOURS_OF_DAY, QUERYING
from lakebed.costs.usage_sums import UsageLine, usage_lines
from lakebed.inspection.report import ReportColumn
from lakebed.inspection.report_rows import Row
from lakebed.ports.paying.usage_ledger import time_of

COST_COLUMNS = (
    ReportColumn("day", "time", "day"),
    ReportColumn("table", "text", "table"),
    ReportColumn("kind", "text", "kind"),
    ReportColumn("dollars", "real", "dollars"),
    ReportColumn("rows_in", "count", "rows in"),
    ReportColumn("rows_merged", "count", "merged"),
    ReportColumn("rows_read", "count", "read"),
    ReportColumn("requests", "count", "requests"),
    ReportColumn("bytes_written", "count", "bytes written"),
    ReportColumn("bytes_read", "count", "bytes read"),
    ReportColumn("seconds", "real", "seconds"),
)
QUERY_COLUMNS = (
    ReportColumn("hour", "time", "hour"),
    ReportColumn("table", "text", "table"),
    ReportColumn("queries", "count", "queries"),
    ReportColumn("rows_read", "count", "rows"),
    ReportColumn("requests", "count", "requests"),
    ReportColumn("bytes_read", "count", "bytes read"),
    ReportColumn("seconds", "real", "seconds"),
    ReportColumn("dollars", "real", "dollars"),
)


def _lines(app: App, asked: AskedReport, *, hours: int) -> Iterator[tuple[str, UsageLine]]:
    """Yield lines of the ledger with the names of their tables, the newest first."""
    app.usage.close()  # with what this process counted
    names, entries = usage_entries(app, asked.table, since=since(app, asked))
    found = usage_lines(entries, packaged_prices(), hours=hours, deleted_days=deleted_days(app))
    yield from ((names.get(one.table, one.table), one) for one in found)


def _costs(app: App, asked: AskedReport, _: Failed) -> Iterator[Row]:
    for name, one in _lines(app, asked, hours=HOURS_OF_DAY):
        count = partial(_count, one)
        yield (
            time_of(one.hour),
            name,
            one.kind,
            one.dollars,
            count("rows_in"),
            count("rows_merged"),
            count("rows_read"),
            count(*REQUESTS),
            count(*WRITTEN),
            count(*READ),
            one.sum(["life_seconds"]),
        )


def _queries(app: App, asked: AskedReport, _: Failed) -> Iterator[Row]:
    for name, one in _lines(app, asked, hours=1):
        if one.kind in QUERYING:
            count = partial(_count, one)
            yield (
                time_of(one.hour),
                name,
                count("queries"),
                count("rows_read"),
                count(*REQUESTS),
                count(*READ),
                one.sum(["life_seconds"]),
                one.dollars,
            )


def _count(line: UsageLine, *counters: str) -> int:
    return round(line.sum(counters))


COSTS = ReportKind(columns=COST_COLUMNS, rows=_costs)
QUERIES = ReportKind(columns=QUERY_COLUMNS, rows=_queries)
