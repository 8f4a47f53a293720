"""A version of a table as a data set of Arrow: what DuckDB, DataFusion and Polars read from.

An engine asks a data set for a scanner, with the columns that it needs and an expression that rows
must meet. Arrow's own scanners cannot be given to it: one over a generator of ours aborts the
process when it is left half read. So scanners are objects of ours that hand over our reader.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NoReturn

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from lakebed.errors import InvalidError, LakebedError
from lakebed.ports.sorted_files import ReadFigures
from lakebed.query.asked_files import AskedKeys, LeafFiles
from lakebed.query.conditions import condition_of, without_range
from lakebed.query.explanation import QueryExplanation
from lakebed.query.one_version import OneVersion
from lakebed.query.run_query import QueryPlan
from lakebed.sorted_files.format.arrow_schema import arrow_schema

FRAGMENTS_MAX = 64
"""Most fragments of a data set, for an engine that reads them beside each other."""


class TableDataset(ds.Dataset):  # type: ignore[misc]  # Arrow's classes are untyped
    """One version of a table. Give it to an engine, or read it as a data set of Arrow.

    Rows come in any order. What only a data set of files can do is refused.
    """

    def __init__(
        self,
        version: OneVersion[pa.RecordBatch],
        *,
        monotonic: Callable[[], float] = lambda: 0.0,
        on_scan: Callable[[TableScanner], None] = lambda _: None,
    ) -> None:
        """monotonic: seconds. on_scan: called with each scanner that is asked for."""
        self.version = version
        self._columns = arrow_schema(version.schema)
        self._monotonic = monotonic
        self._on_scan = on_scan
        self.problem: LakebedError | None = None
        """The first error that reading met: engines pass on no more than its text."""

    def __repr__(self) -> str:
        name, number = self.version.table.name, self.version.number
        return f"<data set of lakebed table {name!r} at log number {number}>"

    def __reduce__(self) -> NoReturn:
        raise InvalidError("a data set stays in its process", hint="open the table in the other")

    @property
    def schema(self) -> pa.Schema:
        """Return the table's columns."""
        return self._columns

    @property
    def partition_expression(self) -> pc.Expression:
        """Return what holds for all rows: nothing is known."""
        return pc.scalar(True)

    def scanner(
        self,
        columns: Sequence[str] | None = None,
        filter: pc.Expression | None = None,
        **_: object,
    ) -> TableScanner:
        """Return what reads some columns of the rows that an expression keeps.

        columns: None for all; without any, rows are only counted.
        _: how Arrow is to read files: a table's are read in one way.

        Raises:
            InvalidError: an unknown column, an expression that cannot be computed.
        """
        return self.scan_leaves(None, columns, filter)

    def scan_leaves(
        self,
        leaves: Sequence[LeafFiles] | None,
        columns: Sequence[str] | None,
        filter: pc.Expression | None,
    ) -> TableScanner:
        """Return what reads some leaves of the version, or all. Arguments and errors: as
        `scanner`."""
        try:
            names = None if columns is None else _names(columns)
            read = [_narrowest(self._columns)] if names == [] else names
            condition = condition_of(self.version.schema, columns=read, where=filter)
            plan = self.version.plan(condition, leaves)
        except LakebedError as error:
            self.keep(error)
            raise
        scanner = TableScanner(self, plan, names, filter, self._figures())
        self._on_scan(scanner)
        return scanner

    def _figures(self) -> ReadFigures:
        return ReadFigures(self._monotonic, bytes_max=self.version.scan_bytes_max)

    def keep(self, error: LakebedError) -> None:
        """Keep the first error."""
        self.problem = self.problem or error

    def get_fragments(self, filter: pc.Expression | None = None) -> Iterator[TableFragment]:
        """Yield neighbouring leaves. filter: only of those that it may keep rows of."""
        condition = condition_of(self.version.schema, where=filter)
        leaves = self.version.leaves(AskedKeys(self.version.schema, condition.reached))
        some = max(1, -(-len(leaves) // FRAGMENTS_MAX))
        for start in range(0, len(leaves), some):
            yield TableFragment(self, leaves[start : start + some])

    def to_batches(
        self,
        columns: Sequence[str] | None = None,
        filter: pc.Expression | None = None,
        **_: object,
    ) -> Iterator[pa.RecordBatch]:
        """Yield batches of a scan."""
        return self.scanner(columns, filter).to_batches()

    def to_table(
        self,
        columns: Sequence[str] | None = None,
        filter: pc.Expression | None = None,
        **_: object,
    ) -> pa.Table:
        """Return all rows of a scan in memory."""
        return self.scanner(columns, filter).to_table()

    def head(
        self,
        num_rows: int,
        columns: Sequence[str] | None = None,
        filter: pc.Expression | None = None,
        **_: object,
    ) -> pa.Table:
        """Return some rows of a scan."""
        return self.scanner(columns, filter).head(num_rows)

    def count_rows(self, filter: pc.Expression | None = None, **_: object) -> int:
        """Return how many rows an expression keeps."""
        return self.scanner([], filter).count_rows()

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        hint = "read it with to_batches or to_table, or give it to an engine"
        raise InvalidError("a table's data set cannot do that", hint=hint)

    filter = replace_schema = join = join_asof = sort_by = take = _refuse


class TableFragment:
    """Some neighbouring leaves of a data set."""

    def __init__(self, dataset: TableDataset, leaves: Sequence[LeafFiles]) -> None:
        self._dataset = dataset
        self._leaves = leaves

    @property
    def physical_schema(self) -> pa.Schema:
        """Return the table's columns."""
        return self._dataset.schema

    @property
    def partition_expression(self) -> pc.Expression:
        """Return what holds for all rows: nothing is known."""
        return self._dataset.partition_expression

    def scanner(
        self,
        schema: pa.Schema | None = None,
        columns: Sequence[str] | None = None,
        filter: pc.Expression | None = None,
        **_: object,
    ) -> TableScanner:
        """Return what reads these leaves, as `TableDataset.scanner`. schema: the table's."""
        return self._dataset.scan_leaves(self._leaves, columns, filter)


class TableScanner:
    """Reads one scan. figures: what that costs. Each of its streams reads anew.

    on_rows: is called with the rows of each batch, perhaps by several threads.
    """

    def __init__(
        self,
        dataset: TableDataset,
        plan: QueryPlan,
        names: Sequence[str] | None,
        filter: pc.Expression | None,
        figures: ReadFigures,
    ) -> None:
        self._dataset = dataset
        self._plan = plan
        self._names = names
        self._figures = figures
        self._rows = 0
        self.filter = filter
        self.on_rows: Callable[[int], None] = lambda _rows: None

    @property
    def row_keys(self) -> tuple[str, ...]:
        """Return the fields whose ranges spare reading."""
        return tuple(field.name for field in self._dataset.version.schema.row_keys)

    @property
    def narrows(self) -> bool:
        """Return whether what is asked of rows says something of their keys."""
        return self._dataset.version.narrows(self._plan.condition)

    @property
    def without_range(self) -> tuple[str, ...]:
        """Return the parts of what is asked of rows that say nothing of their keys."""
        if self.filter is None:
            return ()
        return without_range(self._dataset.version.schema, self.filter)

    @property
    def dataset_schema(self) -> pa.Schema:
        """Return the table's columns."""
        return self._dataset.schema

    @property
    def projected_schema(self) -> pa.Schema:
        """Return the columns that are asked for."""
        whole = self._dataset.schema
        if self._names is None:
            return whole
        return pa.schema([whole.field(name) for name in self._names])

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows in any order.

        Raises:
            VersionExpiredError: the version was collected: make another data set. CorruptError: a
            file is damaged.
        """
        version, columns = self._dataset.version, self.projected_schema.names
        try:
            batches = version.query.scan(version.table, self._plan, figures=self._figures)
            while True:
                with self._figures.timed("total"):
                    batch = next(batches, None)
                if batch is None:
                    return
                self._rows += batch.num_rows
                self.on_rows(batch.num_rows)
                yield batch if columns else batch.select([])
        except LakebedError as error:
            self._dataset.keep(error)
            raise

    def to_reader(self) -> pa.RecordBatchReader:
        """Return them as a stream."""
        return pa.RecordBatchReader.from_batches(self.projected_schema, self.to_batches())

    def to_table(self) -> pa.Table:
        """Return them in memory."""
        return self.to_reader().read_all()

    def head(self, num_rows: int) -> pa.Table:
        """Return so many of them, at most."""
        held, left = [], num_rows
        rows = self.to_batches()
        while left > 0 and (batch := next(rows, None)) is not None:
            held.append(batch.slice(0, left))
            left -= len(held[-1])
        return pa.Table.from_batches(held, self.projected_schema)

    def count_rows(self) -> int:
        """Return how many there are."""
        return sum(batch.num_rows for batch in self.to_batches())

    def explanation(self) -> QueryExplanation:
        """Return what was read so far."""
        version, plan = self._dataset.version, self._plan
        as_of = plan.number if plan.is_past else None
        return version.query.explanation(
            version.table, plan, rows=self._rows, figures=self._figures, as_of=as_of
        )


def _names(columns: Sequence[str]) -> list[str]:
    if isinstance(columns, (dict, str)):
        hint = "name columns of the table; the engine computes what follows from them"
        raise InvalidError("columns are no list of names", columns=ascii(columns)[:80], hint=hint)
    return list(columns)


def _narrowest(columns: pa.Schema) -> str:
    """Return the column of the fewest bytes."""
    return str(min(columns, key=lambda column: _width(column.type)).name)


def _width(type_: pa.DataType) -> int:
    try:
        return int(type_.bit_width)
    except ValueError:  # as many as there are letters
        return 1 << 10
