"""Keeps what became of jobs as a table of the lake itself, where that table is there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakebed.errors import InvalidError, TableExistsError
from lakebed.history.job_table import JOBS_SCHEMA, JOBS_TABLE, kept_for

if TYPE_CHECKING:
    from lakebed.bootstrap.app import App
    from lakebed.history.keep_jobs import KeepJobs, Kept
    from lakebed.statestore.open_table import OpenTable
    from lakebed.tables.catalog import TableCatalog

HISTORY_DAYS_MAX = 10 * 365


def begin_history(catalog: TableCatalog, days: int) -> OpenTable:
    """Return the table of jobs, made if there is none. days: for which a new one keeps them.

    Raises:
        InvalidError: not a number of days that can be kept.
    """
    if not 1 <= days <= HISTORY_DAYS_MAX:
        hint = f"give 1 to {HISTORY_DAYS_MAX}"
        raise InvalidError("not a number of days to keep jobs for", days=days, hint=hint)
    if not any(entry.name == JOBS_TABLE for entry in catalog.list()):
        try:
            return catalog.create(JOBS_TABLE, JOBS_SCHEMA, processing=kept_for(days))
        except TableExistsError:  # another process made it just now
            pass
    return catalog.find(JOBS_TABLE)


def keep_jobs(app: App, table: OpenTable) -> Kept:
    """Keep the days that have ended. Raises: what `KeepJobs.run` raises."""
    return _service(app).run(table)


def _service(app: App) -> KeepJobs:
    from lakebed.history.keep_jobs import KeepJobs

    return KeepJobs(
        ingest=app.ingest, entries=app.catalog.list, tracker=app.tracker, clock=app.clock
    )
