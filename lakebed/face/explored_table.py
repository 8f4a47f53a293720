"""Shows a table: some rows of it, its files, and its metadata as other programs read it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from lakebed.bootstrap.object_locations import urls_of
from lakebed.face.sql_table import SqlTable
from lakebed.query.frames import as_duckdb

if TYPE_CHECKING:
    import duckdb

    from lakebed.model.versions import AsOf
    from lakebed.query.table_files import TableFile


class ExploredTable(SqlTable):
    """A table that is looked at."""

    def sample(self, rows: int, *, seed: int | None = None, as_of: AsOf | None = None) -> pa.Table:
        """Return some rows, drawn by lot, in no order; all rows, where there are fewer.

        Each row has the same chance. Up to 128 rows come each from a row group of its own draw; of
        more, some come from each of 128 row groups, and neighbours by key are drawn together more
        often than by chance. So little is read: a row group for each draw, and at most two more of
        each file that leaves share. After a split, leaves have their share of rows by estimate
        until they are compacted.

        A table of at most 100,000 rows, or ten times as many as are asked for, is read whole, and
        so is one that merges rows, and one whose processing leaves nearly all out. Holds at most
        three times as many rows as are asked for.

        seed: a whole number: the same rows again, as long as the table stays as it is; None: others
            each time.
        as_of: as in `query`.

        Raises:
            InvalidError: not a number of rows, not a seed, or there is no such version.
            QueryTooLargeError: it reads more than the table's `scan_bytes_max`.
            VersionExpiredError: an older version is not kept any more: the hint names the oldest
                one; or the version was collected meanwhile: call again.
        """
        from lakebed.query.sample_rows import SampleRows

        chosen = self._app.rng.getrandbits(64) if seed is None else seed
        drawing = SampleRows(query=self._app.query, files=self._app.files)
        return drawing.run(self._opened, rows, chosen, as_of=as_of)

    def files(self, *, as_of: AsOf | None = None) -> list[TableFile]:
        """Return the files of one version, leaf by leaf in key order, for programs that read
        Parquet themselves: all rows of the table, each once, are those whose row keys lie from
        `min` to below `max` of their entry. A file that leaves share has an entry for each.

        Rows are as they are stored: what processing leaves out or merges when they are read, is in
        them. Columns are called as when the file was written; `PARQUET:field_id` tells which they
        are. A file stays for `garbage_seconds_min` after it was replaced, or as long as its version
        is kept.

        as_of: as in `query`; None for the newest version.

        Raises:
            InvalidError: the lake's objects lie in a store that the program gave; there is no such
                version.
            VersionExpiredError: an older version is not kept any more: the hint names the oldest
                one.
        """
        from lakebed.query.table_files import table_files

        return table_files(
            self._opened, urls_of(self._app.objects), past=self._app.past, as_of=as_of
        )

    def to_duckdb(
        self,
        connection: duckdb.DuckDBPyConnection | None = None,
        **asked: Any,  # noqa: ANN401 - as `query` has them
    ) -> duckdb.DuckDBPyRelation:
        """Return the rows of a query as a relation of DuckDB, which asks it anew each time that it
        is read: `table.to_duckdb().aggregate("count(*)")`. Takes what `query` takes.
        `dataset` stays at one version, but is read in parallel, and with DuckDB's own filters.

        connection: of DuckDB; None: a new one, in memory.

        Raises:
            InvalidError: as `query`; DuckDB is not installed.
        """
        return as_duckdb(lambda: self.query(**asked), connection)
