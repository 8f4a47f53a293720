"""Reads rows of a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.face.written_table import WrittenTable
from lakebed.model.predicates.language import Predicate
from lakebed.model.processing import iterator_use
from lakebed.model.versions import AsOf
from lakebed.processing.iterators import load_iterator
from lakebed.query.conditions import condition_of
from lakebed.query.explanation import QueryExplanation
from lakebed.query.frames import as_pandas, as_polars
from lakebed.sorted_files.format.arrow_schema import arrow_schema

if TYPE_CHECKING:
    import polars


class ReadTable(WrittenTable):
    """A table whose rows are read."""

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
    ) -> pa.RecordBatchReader:
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
        plan = self._app.query.plan(
            self._opened,
            partial(condition_of, keys=keys, ranges=ranges, columns=columns, where=where),
            scan_bytes_max=scan_bytes_max,
            as_of=as_of,
        )
        self._app.query.check_budget(self._opened, plan)
        whole = arrow_schema(plan.schema)
        names = None if plan.condition is None else plan.condition.columns
        given = whole if names is None else pa.schema([whole.field(name) for name in names])
        use = None if iterator is None else iterator_use(iterator)
        if use is not None:
            load_iterator(use, whole)
        batches = self._app.query.read(self._opened, plan, limit=limit, iterator=use)
        return pa.RecordBatchReader.from_batches(given, batches)

    def count(
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
        if keys is None and ranges is None and where is None:
            return self._app.count.all_rows(
                self._opened,
                scan_bytes_max=scan_bytes_max,
                as_of=as_of,
                on_progress=on_progress,
            )
        ask = partial(condition_of, keys=keys, ranges=ranges, where=where)
        return self._app.count.matching(
            self._opened,
            ask,
            scan_bytes_max=scan_bytes_max,
            as_of=as_of,
            on_progress=on_progress,
        )

    def __len__(self) -> int:
        return self.count()

    def __bool__(self) -> bool:
        """Return True, also for a table without rows: counting them would cost too much."""
        return True

    def head(self, rows: int = 5, *, as_of: AsOf | None = None) -> pa.Table:
        """Return the first rows by key. as_of: as in `query`."""
        return self.to_arrow(limit=rows, as_of=as_of)

    def to_arrow(self, **asked: Any) -> pa.Table:  # noqa: ANN401 - as `query` has them
        """Return all rows of a query in memory. Takes what `query` takes, and raises the same."""
        return self.query(**asked).read_all()

    def to_pandas(self, **asked: Any) -> Any:  # noqa: ANN401 - a DataFrame
        """Return them as a DataFrame of pandas. Raises: InvalidError too, where it is missing."""
        return as_pandas(self.query(**asked))

    def to_polars(self, **asked: Any) -> polars.DataFrame:  # noqa: ANN401 - as `query` has them
        """Return them as a DataFrame of Polars. Raises: InvalidError too, where it is missing."""
        return as_polars(self.query(**asked))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Give all rows to whatever reads Arrow's streams: `polars.DataFrame(table)`, DuckDB."""
        return self.query().__arrow_c_stream__(requested_schema)

    def explain(
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
        return self._app.query.explain(
            self._opened,
            partial(condition_of, keys=keys, ranges=ranges, columns=columns, where=where),
            limit=limit,
            scan_bytes_max=scan_bytes_max,
            as_of=as_of,
            monotonic=self._app.clock.monotonic,
        )
