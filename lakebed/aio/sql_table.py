"""The async twin of `lakebed.face.sql_table`.

Made by `make docs` from `lakebed/face/sql_table.py`; change it there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakebed.aio.batches import Batches
from lakebed.aio.scanned_table import ScannedTable
from lakebed.face.sql_table import SqlTable as SyncSqlTable

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakebed.sql.asked_versions import AsOfTables
    from lakebed.sql.explain_sql import SqlExplanation
    from lakebed.sql.sql_work import Parameters


class SqlTable(ScannedTable):
    """A table that is asked in SQL, where DuckDB is installed: the extra `sql`."""

    _sync: SyncSqlTable

    def sql(
        self,
        text: str,
        parameters: Parameters = (),
        *,
        as_of: AsOfTables | None = None,
        scan_bytes_max: int | None = None,
        on_progress: Callable[[int], None] = lambda _rows: None,
    ) -> Batches:
        """Return the rows that a SELECT gives; `this` is the table: "select count(*) from this".
        Everything else as in `Lake.sql`; `as_of={"this": 41}` leaves other tables at their newest.
        """
        return Batches(
            self._calls,
            lambda: self._sync.sql(
                text,
                parameters,
                as_of=as_of,
                scan_bytes_max=scan_bytes_max,
                on_progress=on_progress,
            ),
        )

    async def explain_sql(
        self,
        text: str,
        parameters: Parameters = (),
        *,
        as_of: AsOfTables | None = None,
        scan_bytes_max: int | None = None,
    ) -> SqlExplanation:
        """Run a SELECT, throw its rows away, and return the engine's plan with its times, and what
        each scan of a table read. Takes what `sql` takes, and raises what it raises.
        """
        return await self._calls.run(
            lambda: self._sync.explain_sql(
                text, parameters, as_of=as_of, scan_bytes_max=scan_bytes_max
            )
        )
