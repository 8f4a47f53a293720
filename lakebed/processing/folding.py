"""Values of rows with equal keys become one value, column by column, by numpy over whole windows.

Nulls are left out, as SQL does; a group of nothing but nulls gives null. -0.0 is given as 0.0.
NaN is above all numbers, so that `min` gives it only where there is nothing else.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakebed.errors import SumTooLargeError
from lakebed.processing.value_order import (
    Indices,
    Numbers,
    digits,
    index_array,
    integers_of,
    winners,
    without_nulls,
)

_LIMB = 32
_LIMB_MASK = np.int64((1 << _LIMB) - 1)


def folded(column: pa.Array, starts: Indices, function: str, field: str) -> pa.Array:
    """Return one value for each group of neighbouring rows.

    starts: where groups begin, ascending from 0; no group is empty.
    function: sum, min or max.
    field: its name, for errors.

    Raises:
        SumTooLargeError: a sum that the type cannot hold.
    """
    if pa.types.is_map(column.type):
        return _folded_map(column, starts, function, field)
    type_ = column.type
    if pa.types.is_decimal(type_):
        if function == "sum":
            return _decimal_sum(column, starts, field)
        return _picked(column, starts, function)
    if not pa.types.is_primitive(type_):  # text, binary; bools are primitive
        return _picked(column, starts, function)
    valid = _valid_bits(column)
    missing = None if valid is None else ~np.logical_or.reduceat(valid, starts)
    if pa.types.is_floating(type_):
        return _array(_float_fold(column, valid, starts, function), missing, type_)
    numbers = integers_of(without_nulls(column))
    if valid is not None:
        limits = np.iinfo(np.int64)
        empty = {"sum": 0, "min": limits.max, "max": limits.min}[function]
        numbers = np.where(valid, numbers, empty)
    found: Numbers = _REDUCE[function].reduceat(numbers, starts)
    if function == "sum":
        limits = np.iinfo(str(type_))
        if not _fits(numbers, starts, found, int(limits.min), int(limits.max)):
            raise _too_large(field, type_)
    return _array(found, missing, type_)


def _float_fold(
    column: pa.Array, valid: npt.NDArray[np.bool_] | None, starts: Indices, function: str
) -> npt.NDArray[np.floating[Any]]:
    values = without_nulls(column).to_numpy(zero_copy_only=False)
    if valid is not None:
        # `fmin` passes over NaN; above a null nothing is lower than -inf.
        empty = {"sum": 0.0, "min": np.nan, "max": -np.inf}[function]
        values = np.where(valid, values, values.dtype.type(empty))
    reduce: Any = np.fmin if function == "min" else _REDUCE[function]
    with np.errstate(all="ignore"):
        found: npt.NDArray[np.floating[Any]] = reduce.reduceat(values, starts) + 0.0
    return found.astype(values.dtype, copy=False)


def _fits(numbers: Numbers, starts: Indices, sums: Numbers, least: int, most: int) -> bool:
    """Return whether sums are right, and within the limits of their type."""
    longest = int(np.diff(starts, append=len(numbers)).max())
    reach = max(abs(int(numbers.min())), abs(int(numbers.max()))) * longest
    if reach > np.iinfo(np.int64).max:  # perhaps a sum went round: add halves
        low = np.add.reduceat(numbers & _LIMB_MASK, starts)
        high = np.add.reduceat(numbers >> _LIMB, starts) + (low >> _LIMB)
        if (high != high.astype(np.int32)).any():
            return False
    return reach <= most or (int(sums.min()) >= least and int(sums.max()) <= most)


def _too_large(field: str, type_: pa.DataType) -> SumTooLargeError:
    hint = "values of one key add up to more than the type holds: use a wider type, or floats"
    return SumTooLargeError("a sum does not fit its field", field=field, type=type_, hint=hint)


def _decimal_sum(column: pa.Array, starts: Indices, field: str) -> pa.Array:
    """Add four limbs of 32 bits apart, then carry: numpy has no integers of 128 bits."""
    raw = np.frombuffer(column.buffers()[1], np.uint32, 4 * len(column), 16 * column.offset)
    limbs = raw.reshape(-1, 4).astype(np.int64)
    limbs[:, 3] = limbs[:, 3].astype(np.int32)
    valid = _valid_bits(column)
    if valid is not None:
        limbs[~valid] = 0
    sums = np.add.reduceat(limbs, starts, axis=0)
    for index in range(3):
        sums[:, index + 1] += sums[:, index] >> _LIMB
        sums[:, index] &= _LIMB_MASK
    top = sums[:, 3]
    if (top != top.astype(np.int32)).any():
        raise _too_large(field, column.type)
    words = (sums & _LIMB_MASK).astype(np.uint32)
    missing = None if valid is None else ~np.logical_or.reduceat(valid, starts)
    bits = None if missing is None else pa.array(~missing).buffers()[1]
    buffers = [bits, pa.py_buffer(words.tobytes())]
    found = pa.Array.from_buffers(column.type, len(starts), buffers)
    try:
        found.validate(full=True)
    except pa.ArrowInvalid:
        raise _too_large(field, column.type) from None
    return found


def _picked(column: pa.Array, starts: Indices, function: str) -> pa.Array:
    """Return the least or greatest of each group, by the order of values."""
    groups = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(column)))
    indices = winners(groups, len(starts), [column], least=function == "min")
    return column.take(pa.array(indices))


def _folded_map(column: pa.Array, starts: Indices, function: str, field: str) -> pa.Array:
    """Return maps with the keys of all maps of a group, ascending; their values become one."""
    offsets = column.offsets.to_numpy()
    entries = slice(int(offsets[0]), int(offsets[-1]))
    rows = np.repeat(np.arange(len(column)), np.diff(offsets))
    groups = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(column)))[rows]
    keys, items = (child[entries] for child in (column.keys, column.items))
    valid = _valid_bits(column)
    indices = np.arange(len(rows)) if valid is None else np.flatnonzero(valid[rows])
    counts = np.zeros(len(starts), np.int64)
    if len(indices):
        (numbers,) = digits(keys)
        indices = indices[np.lexsort((numbers[indices], groups[indices]))]
        is_new = np.diff(numbers[indices], prepend=numbers[indices[0]]) != 0
        is_new |= np.diff(groups[indices], prepend=-1) != 0
        firsts = np.flatnonzero(is_new)
        items = folded(items.take(pa.array(indices)), firsts, function, field)
        counts += np.bincount(groups[indices[firsts]], minlength=len(starts))
        indices = indices[firsts]
    else:
        items = items[:0]
    ends = pa.array(np.concatenate([[0], np.cumsum(counts)]).astype(np.int32))
    missing = None if valid is None else pa.array(~np.logical_or.reduceat(valid, starts))
    keys = keys.take(pa.array(indices))
    return pa.MapArray.from_arrays(ends, keys, items, type=column.type, mask=missing)


_REDUCE: dict[str, Any] = {"sum": np.add, "min": np.minimum, "max": np.maximum}


def _valid_bits(column: pa.Array) -> npt.NDArray[np.bool_] | None:
    if not column.null_count:
        return None
    bits: npt.NDArray[np.bool_] = column.is_valid().to_numpy(zero_copy_only=False)
    return bits


def _array(
    values: npt.NDArray[Any], missing: npt.NDArray[np.bool_] | None, type_: pa.DataType
) -> pa.Array:
    if missing is None and type_ == pa.int64():
        return index_array(values)
    if pa.types.is_boolean(type_):
        return pa.array(values.astype(bool), mask=missing)
    if pa.types.is_temporal(type_):
        width = np.int32 if type_.bit_width == 32 else np.int64
        return pa.array(values.astype(width), mask=missing).view(type_)
    return pa.array(values, type_, mask=missing)
