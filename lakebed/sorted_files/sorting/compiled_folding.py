"""Merged rows with equal keys made one before they are copied together, by kernels.

What is not simple here stays as it is: `processing` makes one row of what comes with equal keys,
and says what is right. So all that is asked of a fold is that it may be done in parts: it is done
again with what it gives.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from lakebed.kernels.folding import MAX, MIN, SUM, TOO_LARGE, NumberColumn, fold_numbers, group_rows
from lakebed.kernels.keys import INT32, INT64, Keys
from lakebed.kernels.merging import Order, Rows
from lakebed.sorted_files.sorting.gathered_rows import (
    Span,
    addresses_of,
    gathered,
    kind_of,
    validity_of,
)

Folds = Mapping[str, str]
"""The aggregation of each column that is no key: sum, min or max."""

_FUNCTIONS = {"sum": SUM, "min": MIN, "max": MAX}


def can_fold(schema: pa.Schema, keys: Sequence[str], folds: Folds) -> bool:
    """Return whether kernels fold all columns but the keys."""
    return all(
        column.name in keys or (column.name in folds and _kind(column.type) is not None)
        for column in schema
    )


def folded(
    batches: Sequence[pa.RecordBatch],
    spans: Sequence[Span],
    order: Order,
    keys: Keys,
    *,
    names: Sequence[str],
    folds: Folds,
) -> pa.RecordBatch | None:
    """Return one row for each key; None where a sum is too large, perhaps only on the way.

    batches, spans: as `gathered` takes them.
    order: of the rows, whose segments are batches.
    keys: where those called `names` are.
    """
    segments, rows = order
    starts = np.empty(len(rows), np.int32)
    starts = starts[: group_rows(keys, order, starts)]
    columns = {}
    for name in folds:
        column = _fold([batch.column(name) for batch in batches], order, starts, folds[name])
        if column is None:
            return None
        columns[name] = column
    only_keys = [batch.select(names) for batch in batches]
    for firsts in gathered(only_keys, spans, segments[starts], rows[starts]):
        columns |= dict(zip(names, firsts.columns, strict=True))
    schema = batches[0].schema
    return pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)


def _kind(type_: pa.DataType) -> int | None:
    """Return how kernels see numbers that they can fold; None: they cannot."""
    if pa.types.is_signed_integer(type_) or pa.types.is_temporal(type_):
        return kind_of(type_)
    return None


def _fold(arrays: Sequence[pa.Array], order: Order, starts: Rows, function: str) -> pa.Array | None:
    type_ = arrays[0].type
    kind = _kind(type_)
    assert kind is not None, "only what kernels can fold is folded"
    values = np.array([addresses_of(array, kind)[0] for array in arrays], np.int64)
    limits = np.iinfo(np.int32 if kind == INT32 else np.int64)
    out = pa.allocate_buffer((8 if kind == INT64 else 4) * len(starts))
    present = np.empty(len(starts), np.uint8)
    found = fold_numbers(
        _FUNCTIONS[function],
        NumberColumn(kind, values, *validity_of(arrays)),
        int(limits.min),
        int(limits.max),
        order,
        starts,
        out.address,
        present,
    )
    if found == TOO_LARGE:
        return None
    nulls = len(starts) - found
    bits = pa.py_buffer(np.packbits(present, bitorder="little")) if nulls else None
    return pa.Array.from_buffers(type_, len(starts), [bits, out], nulls)
