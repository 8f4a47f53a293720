"""Makes DuckDB answer questions in SQL about a lake."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from lakebed.errors import InvalidError

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakebed.backends.local.process_folder import ProcessFolder
    from lakebed.bootstrap.app import App
    from lakebed.sql.run_sql import RunSql, SystemTables
    from lakebed.sql.shut_engine import ShutEngine

_ENGINES: WeakKeyDictionary[ProcessFolder, ShutEngine] = WeakKeyDictionary()
"""The engine of each open lake, by the folder that it spills to."""

JOBS_MAX = 1_000
ENTRIES_MAX = 1_000
"""Most rows of a table, the newest: jobs in `lakebed.jobs`, entries in `lakebed.log`."""


def sql_of(
    app: App,
    *,
    scan_bytes_max: int | None = None,
    on_progress: Callable[[int], None] = lambda _rows: None,
) -> RunSql:
    """Return what answers SQL, within limits. Raises: InvalidError: DuckDB is not installed."""
    try:
        from lakebed.sql.run_sql import RunSql, SqlLimits, SqlTables
        from lakebed.sql.shut_engine import ShutEngine
    except ModuleNotFoundError as error:
        if error.name != "duckdb":
            raise
        hint = "install it: pip install 'lakebed[sql]', or -r requirements/sql.txt"
        raise InvalidError("SQL needs DuckDB, which is not installed", hint=hint) from None
    tables = SqlTables(
        # Its log is read once, when it is planned, which tells whether it was dropped.
        table=lambda name: app.catalog.opened(app.catalog.entry(name)),
        names=lambda: [entry.name for entry in app.catalog.list()],
        system_tables=_system_tables(app),
    )
    engine = _ENGINES.setdefault(app.spill, ShutEngine(app.spill.path))
    limits = SqlLimits(scan_bytes_max, on_progress)
    return RunSql(app.query, tables, engine=engine, monotonic=app.clock.monotonic, limits=limits)


def _system_tables(app: App) -> SystemTables:
    from lakebed.inspection.log_listing import list_log
    from lakebed.sql.system_tables import SystemSources, system_tables

    inspection = app.inspection
    find_jobs = partial(
        inspection.job_history().find, job=None, events=(), since_seconds=None, limit=JOBS_MAX
    )
    sources = SystemSources(
        tables=lambda: [
            app.catalog.opened(entry)
            for entry in app.catalog.list()
            if entry.condition != "quarantined"
        ],
        statuses=lambda: inspection.status().run(None)[0],
        jobs=lambda table: find_jobs(table.id),
        log=lambda table: list_log(app.logs.open(table.id), entries_max=ENTRIES_MAX),
    )
    return system_tables(sources)
