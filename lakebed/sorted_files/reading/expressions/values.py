"""Literals of Arrow as values that predicates compare, where that is the same comparison.

Arrow compares values of two types as ones of a third. Here stand the pairs in which a literal that
fits into the field's type compares as its value does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.errors import InvalidError
from lakebed.model.predicates.literals import literal_of
from lakebed.model.schema import Field
from lakebed.sorted_files.format.arrow_schema import arrow_type

_WHOLE_FLOAT_MAX = 1 << 52
"""Integers up to this one are floats, too, and so are their neighbours."""
_kinds = pa.types
_TEXT = (_kinds.is_string, _kinds.is_large_string, _kinds.is_string_view)
_BINARY = (
    _kinds.is_binary,
    _kinds.is_large_binary,
    _kinds.is_fixed_size_binary,
    _kinds.is_binary_view,
)
_NUMBERS = (_kinds.is_integer, _kinds.is_decimal, _kinds.is_floating)
_FITTING: tuple[tuple[Callable[..., bool], tuple[Callable[..., bool], ...]], ...] = (
    (_kinds.is_integer, _NUMBERS),
    (_kinds.is_float64, (_kinds.is_integer, _kinds.is_floating)),
    (_kinds.is_float32, (_kinds.is_floating,)),
    (_kinds.is_decimal, (_kinds.is_integer, _kinds.is_decimal)),
    (_kinds.is_boolean, (_kinds.is_boolean,)),
    (_kinds.is_string, _TEXT),
    (_kinds.is_binary, _BINARY),
    (_kinds.is_date32, (_kinds.is_date32,)),
    (_kinds.is_time, (_kinds.is_time,)),
    (_kinds.is_timestamp, (_kinds.is_timestamp,)),
)


class NotComparedError(Exception):
    """A literal that no value of a predicate stands for."""


def values_of(array: pa.Array, field: Field) -> list[Any]:
    """Return what literals are as values of a field, without nulls.

    Raises:
        NotComparedError: some are no such values, or Arrow compares them in another way.
    """
    kind = arrow_type(field.type)
    try:
        given = array.drop_null()
        if not _fits(given.type, kind) or not _is_exact(given, kind):
            raise NotComparedError
        same = given.cast(kind)
        if pa.types.is_temporal(kind):
            same = same.cast(pa.int32() if pa.types.is_date32(kind) else pa.int64())
        values = same.to_pylist()  # bounded: literals of one test
        return [literal_of(field, value) for value in values]
    except (pa.ArrowException, InvalidError):
        raise NotComparedError from None


def keeps_values(given: pa.DataType, wanted: pa.DataType) -> bool:
    """Return whether a cast, where it does not fail, gives values that compare as those it was
    given."""
    same = (_kinds.is_integer, _kinds.is_timestamp, _kinds.is_time)
    both = any(is_kind(given) and is_kind(wanted) for is_kind in same)
    as_text = any(
        any(k(given) for k in some) and any(k(wanted) for k in some) for some in (_TEXT, _BINARY)
    )
    return given == wanted or as_text or (both and _zones_alike(given, wanted))


def _fits(given: pa.DataType, wanted: pa.DataType) -> bool:
    return any(
        is_kind(wanted) and any(is_given(given) for is_given in literals)
        for is_kind, literals in _FITTING
    ) and _zones_alike(given, wanted)


def _zones_alike(given: pa.DataType, wanted: pa.DataType) -> bool:
    if not pa.types.is_timestamp(wanted):
        return True
    return (given.tz is None) is (wanted.tz is None)


def _is_exact(given: pa.Array, kind: pa.DataType) -> bool:
    """Return whether values of the type are all compared with the literals as they are."""
    if pa.types.is_float32(kind):  # Arrow compares it with a float64 as one of these
        return bool(given.cast(kind).cast(pa.float64()).equals(given.cast(pa.float64())))
    if not pa.types.is_floating(given.type) or not pa.types.is_integer(kind):
        return True
    largest = pc.max(pc.abs(given.cast(pa.float64()))).as_py()  # bounded: one value
    return largest is None or largest <= _WHOLE_FLOAT_MAX
