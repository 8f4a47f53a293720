"""Keeps what became of jobs, and what work used, as tables of the lake itself, where these tables
are there."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from lakebed.errors import InvalidError, TableExistsError
from lakebed.history.job_table import JOBS_SCHEMA, JOBS_TABLE, kept_for
from lakebed.history.usage_table import USAGE_SCHEMA, USAGE_TABLE

if TYPE_CHECKING:
    from lakebed.bootstrap.app import App
    from lakebed.history.keep_days import KeptDays
    from lakebed.model.names import TableName
    from lakebed.model.schema import Schema
    from lakebed.statestore.open_table import OpenTable
    from lakebed.tables.catalog import TableCatalog

HISTORY_DAYS_MAX = 10 * 365


class Kept(msgspec.Struct, frozen=True):
    """The amounts of history that were kept.

    days: whose jobs were not kept before.
    jobs: of these days.
    hours: of usage, of a table and a kind of work each.
    """

    days: int = 0
    jobs: int = 0
    hours: int = 0


def begin_history(catalog: TableCatalog, days: int) -> OpenTable:
    """Return the table of jobs, made if there is none. days: for which a new one keeps them.

    Raises:
        InvalidError: not a number of days that can be kept.
    """
    return _begun(catalog, JOBS_TABLE, JOBS_SCHEMA, days)


def begin_usage(catalog: TableCatalog, days: int) -> OpenTable:
    """Return the table of usage in the same way."""
    return _begun(catalog, USAGE_TABLE, USAGE_SCHEMA, days)


def _begun(catalog: TableCatalog, name: TableName, schema: Schema, days: int) -> OpenTable:
    if not 1 <= days <= HISTORY_DAYS_MAX:
        hint = f"give 1 to {HISTORY_DAYS_MAX}"
        raise InvalidError("not a number of days to keep history for", days=days, hint=hint)
    if not any(entry.name == name for entry in catalog.list()):
        try:
            return catalog.create(name, schema, processing=kept_for(days))
        except TableExistsError:  # another process made it just now
            pass
    return catalog.find(name)


def keep_history(app: App, *, days: int) -> Kept:
    """Keep the days that have ended, of jobs and, where the lake counts it, of usage.

    days: for which new tables keep them.

    Raises:
        InvalidError: not a number of days. Others: what `KeepDays.run` raises.
    """
    jobs = keep_jobs(app, begin_history(app.catalog, days))
    if app.paying.ledger is None:
        return Kept(jobs.days, jobs.rows)
    usage = keep_usage(app, begin_usage(app.catalog, days))
    return Kept(jobs.days, jobs.rows, usage.rows)


def keep_jobs(app: App, table: OpenTable) -> KeptDays:
    """Keep jobs of the days that have ended. Raises: what `KeepDays.run` raises."""
    from lakebed.history.keep_days import KeepDays
    from lakebed.history.keep_jobs import EndedJobs

    rows = EndedJobs(entries=app.catalog.list, tracker=app.tracker)
    return KeepDays(rows, ingest=app.ingest, clock=app.clock).run(table)


def keep_usage(app: App, table: OpenTable) -> KeptDays:
    """Keep usage in the same way. The lake has a ledger."""
    from lakebed.history.keep_days import KeepDays
    from lakebed.history.keep_usage import UsedHours

    assert app.paying.ledger is not None, "usage is counted"
    rows = UsedHours(entries=app.catalog.list, ledger=app.paying.ledger)
    return KeepDays(rows, ingest=app.ingest, clock=app.clock).run(table)
