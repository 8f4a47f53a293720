"""Lists the kinds of reports: what each is asked, and what gives its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from lakebed.bootstrap.app import App
from lakebed.inspection.report import ReportColumn
from lakebed.inspection.report_rows import Row
from lakebed.model.names import MICROS_PER_SECOND, Micros
from lakebed.ports.job_tracker import BEGINNING

ROWS_MAX = 100_000
"""Most rows of a report that has no bound of its own."""

Failed = Callable[[str], None]


class AskedReport(msgspec.Struct, frozen=True, kw_only=True):
    """A request for a report.

    table: None: of all.
    since_seconds: how old what happened may be; None: of any age.
    rows_max: that are shown.
    """

    table: str | None = None
    since_seconds: float | None = None
    rows_max: int = ROWS_MAX


class ReportKind(msgspec.Struct, frozen=True, kw_only=True):
    """A report.

    rows: yields them; calls the third argument with what is not known, and why.
    of_tables: whether it can be asked of one table.
    """

    columns: tuple[ReportColumn, ...]
    rows: Callable[[App, AskedReport, Failed], Iterable[Row]]
    of_tables: bool = True


def since(app: App, asked: AskedReport) -> Micros:
    """Return from when on what happened is wanted."""
    if asked.since_seconds is None:
        return BEGINNING
    return Micros(app.clock.now() - round(asked.since_seconds * MICROS_PER_SECOND))
