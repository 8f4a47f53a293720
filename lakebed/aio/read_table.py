"""The async twin of `lakebed.face.read_table`.

Made by `make docs` from `lakebed/face/read_table.py`; change it there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.aio.batches import Batches
from lakebed.aio.written_table import WrittenTable
from lakebed.face.read_table import ReadTable as SyncReadTable
from lakebed.model.predicates.language import Predicate
from lakebed.model.versions import AsOf
from lakebed.query.explanation import QueryExplanation

if TYPE_CHECKING:
    import polars


class ReadTable(WrittenTable):
    """A table whose rows are read."""

    _sync: SyncReadTable

    def query(
        self,
        *,
        keys: Sequence[object] | None = None,
        ranges: Sequence[Mapping[str, object]] | Mapping[str, object] | None = None,
        columns: Sequence[str] | str | None = None,
        where: Predicate | pc.Expression | str | None = None,
        limit: int | None = None,
        iterator: tuple[str, Mapping[str, Any]] | None = None,
        scan_bytes_max: int | None = None,
        as_of: AsOf | None = None,
    ) -> Batches:
        """Return the rows of one version, in key order, as a stream that reads what is asked of it.

        keys: exact row keys: values, or tuples where there are several key fields (fewer values
            match all keys that begin with them).
        ranges: by key field, `Range(min, max)` or a pair, half open; several are a union; any of
            the row keys may be named.
        columns: None for all.
        where: only rows that it keeps: `"fare >= 4 and city like 'ab%'"`, the same as
            `lakebed.field("fare") >= 4`, or an expression of Arrow. What it says of row keys spares
            reading, as `keys` and `ranges` do.
        limit: rows at the most.
        iterator: a step on the rows, by the name of its entry point and its configuration.
        scan_bytes_max: of files, that may be read; less than the table's setting, or 0: only that
            counts.
        as_of: the version: a log number (`ingest` returns one), a time (with an offset), or a tag;
            None for the newest. Schema, processing and age of rows are those of that version.

        Raises:
            InvalidError: an unknown field, a wrong type, reversed ends, text that is no predicate,
                no such iterator; a version that lies ahead, an unknown tag; the table's budget of
                this month has no more for it.
            QueryTooLargeError: also while reading: it reads more than `scan_bytes_max`.
            IteratorError: while reading: it failed.
            VersionExpiredError: an older version is not kept any more: the hint names the oldest
                one. While reading: too slow, the version was collected; query again.
        """
        return Batches(
            self._calls,
            lambda: self._sync.query(
                keys=keys,
                ranges=ranges,
                columns=columns,
                where=where,
                limit=limit,
                iterator=iterator,
                scan_bytes_max=scan_bytes_max,
                as_of=as_of,
            ),
        )

    async def count(
        self,
        *,
        keys: Sequence[object] | None = None,
        ranges: Sequence[Mapping[str, object]] | Mapping[str, object] | None = None,
        where: Predicate | pc.Expression | str | None = None,
        scan_bytes_max: int | None = None,
        as_of: AsOf | None = None,
        on_progress: Callable[[int], None] = lambda _rows: None,
    ) -> int:
        """Return how many rows `query` gives with the same arguments. Without any the table's state
        knows it, where rows are kept as they came: no file is read, but for parts of files that a
        split has cut since. Otherwise one column is read. `len(table)` is the same without any.

        on_progress: is called with how many rows were read and counted so far.
        """
        return await self._calls.run(
            lambda: self._sync.count(
                keys=keys,
                ranges=ranges,
                where=where,
                scan_bytes_max=scan_bytes_max,
                as_of=as_of,
                on_progress=on_progress,
            )
        )

    async def head(self, rows: int = 5, *, as_of: AsOf | None = None) -> pa.Table:
        """Return the first rows by key. as_of: as in `query`."""
        return await self._calls.run(lambda: self._sync.head(rows, as_of=as_of))

    async def to_arrow(self, **asked: Any) -> pa.Table:
        """Return all rows of a query in memory. Takes what `query` takes, and raises the same."""
        return await self._calls.run(lambda: self._sync.to_arrow(**asked))

    async def to_pandas(self, **asked: Any) -> Any:
        """Return them as a DataFrame of pandas. Raises: InvalidError too, where it is missing."""
        return await self._calls.run(lambda: self._sync.to_pandas(**asked))

    async def to_polars(self, **asked: Any) -> polars.DataFrame:
        """Return them as a DataFrame of Polars. Raises: InvalidError too, where it is missing."""
        return await self._calls.run(lambda: self._sync.to_polars(**asked))

    async def explain(
        self,
        *,
        keys: Sequence[object] | None = None,
        ranges: Sequence[Mapping[str, object]] | Mapping[str, object] | None = None,
        columns: Sequence[str] | str | None = None,
        where: Predicate | pc.Expression | str | None = None,
        limit: int | None = None,
        scan_bytes_max: int | None = None,
        as_of: AsOf | None = None,
    ) -> QueryExplanation:
        """Run a query, throw its rows away, and return what it read and how long that took.

        Takes what `query` takes, and raises what it raises. `print` shows the answer as lines.
        """
        return await self._calls.run(
            lambda: self._sync.explain(
                keys=keys,
                ranges=ranges,
                columns=columns,
                where=where,
                limit=limit,
                scan_bytes_max=scan_bytes_max,
                as_of=as_of,
            )
        )
