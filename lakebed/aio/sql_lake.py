"""The async twin of `lakebed.face.sql_lake`.

Made by `make docs` from `lakebed/face/sql_lake.py`; change it there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakebed.aio.batches import Batches
from lakebed.aio.operated_lake import OperatedLake
from lakebed.face.sql_lake import SqlLake as SyncSqlLake

if TYPE_CHECKING:
    from collections.abc import Callable

    from lakebed.sql.asked_versions import AsOfTables
    from lakebed.sql.explain_sql import SqlExplanation
    from lakebed.sql.sql_work import Parameters


class SqlLake(OperatedLake):
    """A lake that is asked in SQL, where DuckDB is installed: the extra `sql`."""

    _sync: SyncSqlLake

    def sql(
        self,
        text: str,
        parameters: Parameters = (),
        *,
        as_of: AsOfTables | None = None,
        scan_bytes_max: int | None = None,
        on_progress: Callable[[int], None] = lambda _rows: None,
    ) -> Batches:
        """Return the rows that a SELECT over tables of the lake gives, as a stream: "select city,
        count(*) from trips where id >= 'a' and id < 'c' group by city".

        Each table is read at one version. What is said of row keys spares reading, as `keys` and
        `ranges` do. Dropping the stream ends the work. `lakebed.files`, `.leaves`, `.jobs`, `.log`
        and `.metrics` tell of all tables.

        parameters: values of `?` in a list, or of `$name` by name.
        as_of: the version of each table that the text names, as in `Table.query`: a log number
            where it names one table, a time, or a tag; or a version by the name of each table,
            `{"trips": 41}`: the newest of those that are left out. None: the newest of all.
        scan_bytes_max: of files, that each scan of a table may read; less than the table's setting.
        on_progress: is called with how many rows were read so far, by threads of the engine.

        Raises:
            InvalidError: not one SELECT; no such table, column or function; a value that does not
                fit, which may show while reading; a version that lies ahead, an unknown tag.
                DuckDB is not installed.
            QueryTooLargeError: also while reading: a scan reads more than it may.
            TableMissingError: with the nearest known name.
            VersionExpiredError: an older version is not kept any more: the hint names the oldest
                one. While reading: too slow, a version was collected; ask again.
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
