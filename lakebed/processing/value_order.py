"""One order of the values of every type, so that rows that tie are told apart the same everywhere.

Null is below everything. Floats go by their bits, so that -0.0 is below 0.0 and NaN has a place;
lists go by their elements, then by length; structs by their members; maps as lists of entries.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Numbers = npt.NDArray[np.int64]
Indices = npt.NDArray[np.intp]
_BITS = {1: pa.int8(), 8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}


def winners(
    groups: Indices, count: int, columns: Sequence[pa.Array], *, least: bool = False
) -> Indices:
    """Return for each group of rows the index of one that is greatest, column after column.

    groups: of each row, ascending from 0 to `count` - 1, none empty. Rows that tie in all columns
        are equal.
    least: the least instead; null comes after all values then, too.
    """
    indices: Indices = np.arange(len(groups))
    for column in columns:
        if len(indices) == count:
            return indices
        chosen = column if len(indices) == len(groups) else column.take(pa.array(indices))
        left: Indices = np.arange(len(indices))
        for nth, numbers in enumerate(digits(chosen)):
            of_values = nth > 0 or not chosen.null_count
            mine = ~numbers[left] if least and of_values else numbers[left]
            starts = np.flatnonzero(np.diff(groups[indices[left]], prepend=-1))
            tops = np.maximum.reduceat(mine, starts)
            left = left[mine == np.repeat(tops, np.diff(starts, append=len(left)))]
        indices = indices[left]
    return indices[np.flatnonzero(np.diff(groups[indices], prepend=-1))]


def digits(column: pa.Array) -> list[Numbers]:
    """Return numbers that are in the order of the values; the first differing one decides."""
    found: list[Numbers] = []
    if column.null_count:
        found.append(_valid(column).astype(np.int64))
        column = _filled(column)
    type_ = column.type
    if pa.types.is_decimal(type_):
        limbs = np.frombuffer(column.buffers()[1], np.int64, 2 * len(column), 16 * column.offset)
        low = (limbs[::2].view(np.uint64) ^ np.uint64(1 << 63)).view(np.int64)
        return [*found, limbs[1::2], low]
    if pa.types.is_floating(type_):
        bits = integers_of(column)
        sign = np.int64(np.iinfo(np.int32 if type_.bit_width == 32 else np.int64).max)
        return [*found, np.where(bits < 0, bits ^ sign, bits)]
    if pa.types.is_string(type_) or pa.types.is_binary(type_):
        return [*found, _ranks(column)]
    if pa.types.is_nested(type_):
        return [*found, _ranks(_nested(column))]
    return [*found, integers_of(column)]


def integers_of(column: pa.Array) -> Numbers:
    """Return the numbers of a column of fixed width without nulls; of floats their bits."""
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    elif not pa.types.is_integer(column.type):
        column = column.view(_BITS[column.type.bit_width])
    numbers: Numbers = column.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
    return numbers


def index_array(indices: Indices) -> pa.Array:
    """Return indices for Arrow. `pa.array` would load a part of numpy that takes 50 ms."""
    numbers = np.ascontiguousarray(indices, np.int64)
    return pa.Array.from_buffers(pa.int64(), len(numbers), [None, pa.py_buffer(numbers)], 0)


def without_nulls(column: pa.Array) -> pa.Array:
    """Return the values as they lie in memory, whatever stands where nulls are."""
    if not column.null_count:
        return column
    buffers = [None, *column.buffers()[1:]]
    return pa.Array.from_buffers(column.type, len(column), buffers, 0, column.offset)


def _ranks(column: pa.Array) -> Numbers:
    ranks = pc.rank(column, sort_keys="ascending", tiebreaker="dense")
    numbers: Numbers = ranks.to_numpy(zero_copy_only=False).astype(np.int64)
    return numbers


def _nested(column: pa.Array) -> pa.Array:
    """Return binary in the order of a column of lists, maps or structs without nulls."""
    if pa.types.is_struct(column.type):
        members = [digits(member) for member in column.flatten()]
        numbers = [one for member in members for one in member]
        return _packed(numbers, np.arange(len(column) + 1, dtype=np.int64))
    starts = column.offsets.to_numpy().astype(np.int64)
    children = [column.values] if pa.types.is_list(column.type) else [column.keys, column.items]
    inside = [child.slice(starts[0], starts[-1] - starts[0]) for child in children]
    return _packed([one for child in inside for one in digits(child)], starts - starts[0])


def _packed(numbers: Sequence[Numbers], offsets: Numbers) -> pa.Array:
    """Return for each row the bytes of its entries' numbers, which compare as the numbers do."""
    as_bytes = [(one.view(np.uint64) ^ np.uint64(1 << 63)).astype(">u8") for one in numbers]
    raw = np.stack(as_bytes, axis=1).tobytes() if as_bytes else b""
    ends = offsets * (8 * len(as_bytes))
    buffers = [None, pa.py_buffer(ends.tobytes()), pa.py_buffer(raw)]
    return pa.Array.from_buffers(pa.large_binary(), len(offsets) - 1, buffers)


def _valid(column: pa.Array) -> npt.NDArray[np.bool_]:
    valid: npt.NDArray[np.bool_] = column.is_valid().to_numpy(zero_copy_only=False)
    return valid


def _filled(column: pa.Array) -> pa.Array:
    """Return the column with some value instead of each null, the same for all."""
    rows = np.flatnonzero(_valid(column))
    if not len(rows):
        return pa.nulls(len(column), pa.int8()).fill_null(0)
    indices = np.zeros(len(column), np.int64)
    indices[:] = rows[0]
    indices[rows] = rows
    return column.take(pa.array(indices))
