"""Predicates on Arrow batches: which rows are kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.model.predicates.language import (
    And,
    Compare,
    In,
    IsNotNull,
    IsNull,
    Like,
    Not,
    Or,
    Predicate,
)
from lakebed.model.predicates.patterns import pattern_of

_COMPARE: dict[str, Callable[[pa.Array, pa.Scalar], pa.Array]] = {
    "=": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


def kept(batch: pa.RecordBatch, predicate: Predicate) -> pa.RecordBatch:
    """Return the rows for which a checked predicate is true, in order."""
    mask = mask_of(batch, predicate)
    return batch if mask.true_count == len(mask) else batch.filter(mask)


def mask_of(batch: pa.RecordBatch, predicate: Predicate) -> pa.BooleanArray:
    """Return for each row whether a checked predicate is true; null: neither true nor false."""
    match predicate:
        case Compare(name, comparison, value):
            column = batch.column(name)
            return _COMPARE[comparison](column, scalar_of(value, column.type))
        case In(name, values):
            column = batch.column(name)
            found = pc.is_in(column, value_set=_array_of(values, column.type))
            return pc.if_else(column.is_valid(), found, None) if column.null_count else found
        case Like(name, pattern, escape):
            return _liked(batch.column(name), pattern, escape)
        case IsNull(name):
            return batch.column(name).is_null()
        case IsNotNull(name):
            return batch.column(name).is_valid()
        case And(parts):
            return reduce(pc.and_kleene, (mask_of(batch, part) for part in parts))
        case Or(parts):
            return reduce(pc.or_kleene, (mask_of(batch, part) for part in parts))
        case Not(part):
            return pc.invert(mask_of(batch, part))


def _liked(column: pa.Array, pattern: str, escape: str | None) -> pa.BooleanArray:
    wanted = pattern_of(pattern, escape)
    match wanted.rest:
        case "nothing":
            return pc.equal(column, pa.scalar(wanted.prefix, column.type))
        case "anything":
            return pc.starts_with(column, wanted.prefix)
        case _:
            return pc.match_substring_regex(column, wanted.regex)


def scalar_of(value: object, type_: pa.DataType) -> pa.Scalar:
    """Return a literal of a checked predicate as Arrow's. type_: of the column."""
    return _array_of([value], type_)[0]


def _array_of(values: Sequence[object], type_: pa.DataType) -> pa.Array:
    if pa.types.is_temporal(type_):
        return pa.array(values, pa.int32() if type_.bit_width == 32 else pa.int64()).view(type_)
    return pa.array(values, type_)
