"""What answers questions in SQL about a lake."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakebed.errors import InvalidError

if TYPE_CHECKING:
    from lakebed.bootstrap.app import App
    from lakebed.sql.run_sql import RunSql


def sql_of(app: App) -> RunSql:
    """Return what answers SQL. Raises: InvalidError: DuckDB is not installed."""
    try:
        from lakebed.sql.run_sql import RunSql, SqlPlaces
    except ModuleNotFoundError as error:
        if error.name != "duckdb":
            raise
        hint = "install it: pip install 'lakebed[sql]'"
        raise InvalidError("SQL needs DuckDB, which is not installed", hint=hint) from None
    places = SqlPlaces(
        table=app.catalog.find,
        names=lambda: [entry.name for entry in app.catalog.list()],
        system_tables={},
    )
    return RunSql(app.query, places, spill=app.spill.path, monotonic=app.clock.monotonic)
