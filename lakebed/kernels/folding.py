"""Rows that were merged become groups, and the values of a group one value, without being copied.

An order says where each merged row lies.
"""

from __future__ import annotations

from typing import NamedTuple

from lakebed.kernels.keys import BYTES, INT64, Keys, Numbers, compare_rows, number_at
from lakebed.kernels.merging import Order, Rows
from lakebed.kernels.toolchain.compiling import CHECKED, kernel, part
from lakebed.kernels.toolchain.memory import load_u8, store_32, store_64
from lakebed.kernels.unpacking import Bytes

SUM, MIN, MAX = range(3)
TOO_LARGE = -1


class NumberColumn(NamedTuple):
    """The location of a column's numbers in memory.

    kind: INT64 or INT32.
    values: the address of each segment's.
    bits: of their validity, 0 where none is null.
    skip: the index of the first row's bit.
    """

    kind: int
    values: Numbers
    bits: Numbers
    skip: Numbers


@part
def _group_numbers(kind: int, values: Numbers, order: Order, starts: Rows) -> int:
    """Do `group_rows` for keys that are one number."""
    segments, rows = order
    groups, before = 0, 0
    for index in range(len(rows)):
        row = int(rows[index])
        if CHECKED:
            assert row >= 0
        number = number_at(kind, values[segments[index]], row)
        starts[groups] = index  # no branch: how long groups are is chance
        groups += int(number != before or index == 0)
        before = number
    return groups


@kernel
def group_rows(keys: Keys, order: Order, starts: Rows) -> int:
    """Write the indices of rows whose key is not that of the row before; return how many.

    starts: has room for all rows.
    """
    if len(keys.kinds) == 1 and keys.kinds[0] != BYTES:
        return _group_numbers(keys.kinds[0], keys.values[0], order, starts)
    segments, rows = order
    groups = 0
    for index in range(len(rows)):
        if index == 0 or (
            compare_rows(keys, segments[index - 1], rows[index - 1], segments[index], rows[index])
            != 0
        ):
            starts[groups] = index
            groups += 1
    return groups


@kernel
def fold_numbers(
    function: int,
    column: NumberColumn,
    least: int,
    most: int,
    order: Order,
    starts: Rows,
    out: int,
    present: Bytes,
) -> int:
    """Write one number of each group at `out`; nulls are left out. Returns how many groups have
    one, or TOO_LARGE where a sum is not between `least` and `most`, perhaps only on the way.

    starts: the first row of each group. present: becomes 1 for each group that has a number, else
    0.
    """
    kind, values, bits, skip = column
    segments, rows = order
    count = 0
    for group in range(len(starts)):
        stop = starts[group + 1] if group + 1 < len(starts) else len(rows)
        found, has = 0, 0
        for index in range(starts[group], stop):
            segment, row = segments[index], int(rows[index])
            if CHECKED:
                assert row >= 0
            if bits[segment] != 0:
                at = row + skip[segment]
                if (load_u8(bits[segment] + (at >> 3)) >> (at & 7)) & 1 == 0:
                    continue
            number = number_at(kind, values[segment], row)
            if has == 0:
                found = number
            elif function == SUM:
                total = found + number
                if (found ^ total) & (number ^ total) < 0:
                    return TOO_LARGE
                found = total
            elif function == MIN:
                found = min(found, number)
            else:
                found = max(found, number)
            has = 1
        if found < least or found > most:
            return TOO_LARGE
        if kind == INT64:
            store_64(out + 8 * group, found)
        else:
            store_32(out + 4 * group, found)
        present[group] = has
        count += has
    return count
