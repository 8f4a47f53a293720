"""Rows put in order by `lakebed.kernels`: loops over addresses of Arrow buffers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from lakebed.kernels.keys import Keys
from lakebed.kernels.merging import Order
from lakebed.kernels.sorting import sort_order
from lakebed.model.schema import Field
from lakebed.sorted_files.format.row_groups import ROW_GROUP_ROWS_MAX
from lakebed.sorted_files.sorting.compiled_merge import CompiledMerge
from lakebed.sorted_files.sorting.engines import PLAIN, SortedRows, TakenRows
from lakebed.sorted_files.sorting.gathered_rows import (
    SEGMENTS_MAX,
    addresses_of,
    columns_of,
    gathered,
    kind_of,
)
from lakebed.sorted_files.sorting.window_merge import Source

_FOLDED_ROWS_MAX = 4 * ROW_GROUP_ROWS_MAX
"""Most rows that are folded together: fewer come out."""


class CompiledEngine:
    """Merges by a tree of losers, sorts by radix, gathers without a copy in between."""

    def merge(
        self,
        sources: Sequence[Source],
        fields: Sequence[Field],
        folds: Mapping[str, str] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        rows_max = ROW_GROUP_ROWS_MAX if folds is None else _FOLDED_ROWS_MAX
        return CompiledMerge(sources, fields, rows_max=rows_max, folds=folds).batches()

    def sort(
        self, batches: list[pa.RecordBatch], fields: Sequence[Field], bytes_max: int
    ) -> SortedRows:
        if len(batches) >= SEGMENTS_MAX:
            return PLAIN.sort(batches, fields, bytes_max)
        filled = [batch for batch in batches if len(batch)]
        batches.clear()
        order = _order(filled, fields)
        if self.sorts_at_once(filled[0].schema):
            return OrderedRows(filled, order, bytes_max)
        spans = [(0, len(batch)) for batch in filled]
        return TakenRows(gathered(filled, spans, *order), bytes_max)

    def sorts_at_once(self, columns: pa.Schema) -> bool:
        return all(kind_of(column.type) is not None for column in columns)


def _order(batches: Sequence[pa.RecordBatch], fields: Sequence[Field]) -> Order:
    """Return all rows in order; their segments are batches."""
    kinds = [kind_of(batches[0].column(field.name).type) for field in fields]
    found = [
        [addresses_of(batch.column(field.name), kind) for batch in batches]
        for field, kind in zip(fields, kinds, strict=True)
        if kind is not None  # every key type has one
    ]
    addresses = np.array(found, np.int64)
    starts = np.cumsum([0, *map(len, batches)], dtype=np.int64)
    values, bytes_ = (np.ascontiguousarray(addresses[:, :, part]) for part in range(2))
    keys = Keys(np.array(kinds, np.int64), values, bytes_)
    order = Order(np.empty(starts[-1], np.uint16), np.empty(starts[-1], np.int32))
    sort_order(keys, starts, (max(map(len, batches)) - 1).bit_length(), order)
    return order


class OrderedRows:
    """Rows in order that lie where they were, copied together batch by batch when these are asked
    for. All columns are of types that kernels copy."""

    def __init__(self, batches: Sequence[pa.RecordBatch], order: Order, bytes_max: int) -> None:
        self._schema = batches[0].schema
        self._columns = list(columns_of(batches))
        self._segments, self._rows = order
        count = len(self._rows)
        size = sum(batch.nbytes for batch in batches)
        step = max(1, count * bytes_max // max(1, size))
        self.starts = [*range(0, count, step), count]
        if step * sum(column.widest() for column in self._columns) > 4 * bytes_max:
            self.starts = [0]
            while self.starts[-1] < count:
                self.starts.append(self._end_of(self.starts[-1], step, 2 * bytes_max))

    def _end_of(self, begin: int, step: int, bytes_max: int) -> int:
        """Return where a batch ends that is not too large."""
        rows = min(step, len(self._rows) - begin)
        while rows > 1 and sum(self._sizes(begin, begin + rows)) > bytes_max:
            rows //= 2
        return begin + rows

    def batch(self, index: int) -> pa.RecordBatch:
        return self._copied(*self.starts[index : index + 2])

    def first(self, index: int) -> pa.RecordBatch:
        begin = self.starts[index]
        return self._copied(begin, begin + 1)

    def _copied(self, begin: int, end: int) -> pa.RecordBatch:
        segments, rows = self._segments[begin:end], self._rows[begin:end]
        columns = [column.gathered(segments, rows) for column in self._columns]
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)

    def _sizes(self, begin: int, end: int) -> list[int]:
        segments, rows = self._segments[begin:end], self._rows[begin:end]
        return [column.size(segments, rows) for column in self._columns]


COMPILED = CompiledEngine()
