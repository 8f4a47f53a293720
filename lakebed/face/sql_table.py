"""A table that is asked in SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakebed.face.asked_in_sql import sql_of
from lakebed.face.scanned_table import ScannedTable

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from lakebed.sql.asked_versions import AsOfTables
    from lakebed.sql.explain_sql import SqlExplanation
    from lakebed.sql.sql_work import Parameters


class SqlTable(ScannedTable):
    """A table that is asked in SQL, where DuckDB is installed: the extra `sql`."""

    def sql(
        self,
        text: str,
        parameters: Parameters = (),
        *,
        as_of: AsOfTables | None = None,
        scan_bytes_max: int | None = None,
        on_progress: Callable[[int], None] = lambda _rows: None,
    ) -> pa.RecordBatchReader:
        """Return the rows that a SELECT gives; `this` is the table: "select count(*) from this".
        Everything else as in `Lake.sql`; `as_of={"this": 41}` leaves other tables at their newest.
        """
        sql = sql_of(self._app, scan_bytes_max=scan_bytes_max, on_progress=on_progress)
        return sql.run(text, parameters, this=self._opened, as_of=as_of)

    def explain_sql(
        self,
        text: str,
        parameters: Parameters = (),
        *,
        as_of: AsOfTables | None = None,
        scan_bytes_max: int | None = None,
    ) -> SqlExplanation:
        """Run a SELECT, throw its rows away, and return the engine's plan with its times, and what
        each scan of a table read. Takes what `sql` takes, and raises what it raises."""
        sql = sql_of(self._app, scan_bytes_max=scan_bytes_max)
        from lakebed.sql.explain_sql import explain_sql

        return explain_sql(sql, text, parameters, this=self._opened, as_of=as_of)
