"""Rows that were merged become groups, and the values of a group one value, without being copied.

`segments` and `rows` tell of each merged row where it lies, as in `gathering`.
"""

from __future__ import annotations

from lakebed.kernels.keys import BYTES, INT64, Numbers, Table, compare_rows, number_at
from lakebed.kernels.merging import Rows, Segments
from lakebed.kernels.toolchain.compiling import CHECKED, kernel, part
from lakebed.kernels.toolchain.memory import load_u8, store_32, store_64
from lakebed.kernels.unpacking import Bytes

SUM, MIN, MAX = range(3)
TOO_LARGE = -1


@part
def _group_numbers(kind: int, values: Numbers, segments: Segments, rows: Rows, starts: Rows) -> int:
    """Do `group_rows` for keys that are one number."""
    groups, before = 0, 0
    for place in range(len(rows)):
        row = int(rows[place])
        if CHECKED:
            assert row >= 0
        number = number_at(kind, values[segments[place]], row)
        starts[groups] = place  # no branch: how long groups are is chance
        groups += int(number != before or place == 0)
        before = number
    return groups


@kernel
def group_rows(
    kinds: Numbers, values: Table, bytes_: Table, segments: Segments, rows: Rows, starts: Rows
) -> int:
    """Write the places of rows whose key is not that of the row before; return how many.

    kinds, values, bytes_: as in `keys`. starts: has room for all rows.
    """
    if len(kinds) == 1 and kinds[0] != BYTES:
        return _group_numbers(kinds[0], values[0], segments, rows, starts)
    groups = 0
    for place in range(len(rows)):
        if place == 0 or (
            compare_rows(
                kinds,
                values,
                bytes_,
                segments[place - 1],
                rows[place - 1],
                segments[place],
                rows[place],
            )
            != 0
        ):
            starts[groups] = place
            groups += 1
    return groups


@kernel
def fold_numbers(
    function: int,
    kind: int,
    values: Numbers,
    bits: Numbers,
    skip: Numbers,
    least: int,
    most: int,
    segments: Segments,
    rows: Rows,
    starts: Rows,
    out: int,
    present: Bytes,
) -> int:
    """Write one number of each group at `out`; nulls are left out. Returns how many groups have
    one, or TOO_LARGE where a sum is not between `least` and `most`, perhaps only on the way.

    kind: INT64 or INT32. values: the address of each segment's; bits: of their validity, 0 where
    none is null; skip: the place of the first row's bit. present: becomes 1 for each group that has
    a number, else 0.
    """
    count = 0
    for group in range(len(starts)):
        stop = starts[group + 1] if group + 1 < len(starts) else len(rows)
        found, has = 0, 0
        for place in range(starts[group], stop):
            segment, row = segments[place], int(rows[place])
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
