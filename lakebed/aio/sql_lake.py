"""The async twin of `lakebed.face.sql_lake`.

Made by `make docs` from `lakebed/face/sql_lake.py`; change it there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakebed.aio.batches import Batches
from lakebed.aio.operated_lake import OperatedLake
from lakebed.face.sql_lake import SqlLake as SyncSqlLake

if TYPE_CHECKING:
    from lakebed.sql.explain_sql import SqlExplanation
    from lakebed.sql.sql_work import Parameters


class SqlLake(OperatedLake):
    """A lake that is asked in SQL, where DuckDB is installed: the extra `sql`."""

    _sync: SyncSqlLake

    def sql(self, text: str, parameters: Parameters = ()) -> Batches:
        """Return the rows that a SELECT over tables of the lake gives, as a stream: "select city,
        count(*) from trips where id >= 'a' and id < 'c' group by city".

        Each table is read at one version. What is said of row keys spares reading, as `keys` and
        `ranges` do. Dropping the stream ends the work. `lakebed.files`, `.leaves`, `.jobs`, `.log`
        and `.metrics` tell of all tables.

        parameters: values of `?` in a list, or of `$name` by name.

        Raises:
            InvalidError: not one SELECT; no such table, column or function; a value that does not
                fit, which may show while reading. DuckDB is not installed.
            TableMissingError: with the nearest known name.
            VersionExpiredError: while reading: too slow, a version was collected; ask again.
        """
        return Batches(self._calls, lambda: self._sync.sql(text, parameters))

    async def explain_sql(self, text: str, parameters: Parameters = ()) -> SqlExplanation:
        """Run a SELECT, throw its rows away, and return the engine's plan with its times, and what
        each scan of a table read. Takes what `sql` takes, and raises what it raises.
        """
        return await self._calls.run(lambda: self._sync.explain_sql(text, parameters))
