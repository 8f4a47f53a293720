"""Sorted rows with equal keys become one row, window after window.

The last group of a window is held back as one row: the next window may hold more of it. So a group
of any size takes the memory of one window.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.model.processing import Fold, Latest, Processing, fold_of
from lakebed.model.schema import Schema
from lakebed.processing.folding import folded
from lakebed.processing.value_order import Indices, index_array, integers_of, winners

MergeRows = Callable[[pa.RecordBatch, Indices], pa.RecordBatch]


def row_merge(processing: Processing, schema: Schema, columns: Sequence[str]) -> MergeRows | None:
    """Return what makes one row of each group; None: all rows stay. columns: of the batches."""
    if processing.latest is not None:
        return LatestRows(processing.latest, schema, columns)
    if processing.aggregate is not None:
        return AggregatedRows(processing.aggregate, schema, columns)
    return None


def merged_rows(
    batches: Iterable[pa.RecordBatch], keys: Sequence[str], merge: MergeRows
) -> Iterator[pa.RecordBatch]:
    """Yield one row for each key, in order. batches: sorted by these keys; equal ones may
    straddle them."""
    held: pa.RecordBatch | None = None
    for batch in batches:
        if not len(batch):
            continue
        rows = merged_batch(batch, keys, merge)
        if held is not None:
            both = pa.concat_batches([held, rows.slice(0, 1)])
            first = merged_batch(both, keys, merge)
            if len(first) == 1 == len(rows):
                held = first
                continue
            yield first.slice(0, 1)
            rows = rows.slice(1) if len(first) == 1 else rows
        if len(rows) > 1:
            yield rows.slice(0, len(rows) - 1)
        held = rows.take(index_array(np.array([len(rows) - 1])))
    if held is not None:
        yield held


def merged_batch(batch: pa.RecordBatch, keys: Sequence[str], merge: MergeRows) -> pa.RecordBatch:
    """Return one row for each key of a sorted batch."""
    starts = group_starts([batch.column(name) for name in keys])
    return batch if len(starts) == len(batch) else merge(batch, starts)


def group_starts(keys: Sequence[pa.Array]) -> Indices:
    """Return where rows differ from those before them in some key. keys: columns without nulls."""
    rows = len(keys[0])
    differs = np.zeros(rows, bool)
    differs[:1] = True
    for column in keys:
        if pa.types.is_string(column.type) or pa.types.is_binary(column.type):
            other = pc.not_equal(column.slice(1), column.slice(0, max(0, rows - 1)))
            differs[1:] |= other.to_numpy(zero_copy_only=False)
        else:
            numbers = integers_of(column)
            differs[1:] |= numbers[1:] != numbers[:-1]
    return np.flatnonzero(differs)


class LatestRows:
    """Keeps the row of each group with the greatest sequence; among equals a delete, then the
    greatest by the other fields."""

    def __init__(self, latest: Latest, schema: Schema, columns: Sequence[str]) -> None:
        first = [latest.sequence, *([latest.delete] if latest.delete else [])]
        found = [field for field in schema.values if field.name in columns]
        values = sorted(found, key=lambda field: field.number)
        self._order = [*first, *(f.name for f in values if f.name not in first)]
        self._delete = latest.delete

    def __call__(self, batch: pa.RecordBatch, starts: Indices) -> pa.RecordBatch:
        groups = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(batch)))
        columns = [batch.column(name) for name in self._order]
        return batch.take(pa.array(winners(groups, len(starts), columns)))


class _Ordered(msgspec.Struct, frozen=True):
    """Fields of which each group gives those of one row: its first or last by a sequence."""

    fold: Fold
    names: tuple[str, ...]


class AggregatedRows:
    """Makes one row of each group; each value field by its function."""

    def __init__(
        self, aggregate: Mapping[str, str], schema: Schema, columns: Sequence[str]
    ) -> None:
        folds = {f.name: fold_of(aggregate[f.name]) for f in schema.values if f.name in columns}
        self._names = list(columns)
        self._functions = {n: f.function for n, f in folds.items() if f.by is None}
        self._ordered = [
            _Ordered(fold, tuple(name for name, other in folds.items() if other == fold))
            for fold in dict.fromkeys(folds.values())
            if fold.by is not None
        ]

    @property
    def folds(self) -> dict[str, str] | None:
        """Return what is done with each column where that may be done in parts: sum, min or max."""
        if self._ordered:
            return None
        return {name: text.replace("count", "sum") for name, text in self._functions.items()}

    def __call__(self, batch: pa.RecordBatch, starts: Indices) -> pa.RecordBatch:
        firsts = index_array(starts)
        found: dict[str, pa.Array] = {}
        for ordered in self._ordered:
            found |= _ordered_values(batch, starts, ordered)
        for name in batch.schema.names:
            if name in self._functions:
                function = self._functions[name].replace("count", "sum")
                found[name] = folded(batch.column(name), starts, function, name)
            elif name not in found:
                found[name] = batch.column(name).take(firsts)
        columns = [found[name] for name in batch.schema.names]
        return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _ordered_values(
    batch: pa.RecordBatch, starts: Indices, ordered: _Ordered
) -> dict[str, pa.Array]:
    """Return the values of the first or last row of each group; among rows that tie, of that which
    is greatest in these fields."""
    assert ordered.fold.by is not None, "an order has a field"
    sequence = integers_of(batch.column(ordered.fold.by))
    order = pa.array(~sequence if ordered.fold.function == "first" else sequence)
    groups = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(batch)))
    columns = [batch.column(name) for name in ordered.names]
    indices = pa.array(winners(groups, len(starts), [order, *columns]))
    return {name: batch.column(name).take(indices) for name in ordered.names}
