"""Pages of a column chunk: values that lie in segments, which are Arrow arrays, become bytes.

Pages are written one behind the other.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lakebed.kernels.keys import Numbers
from lakebed.kernels.packing import Levels, put_deltas, put_levels
from lakebed.kernels.toolchain.compiling import CHECKED, kernel, part
from lakebed.kernels.toolchain.memory import (
    load_i8,
    load_i16,
    load_i32,
    load_i64,
    load_u8,
    load_u16,
    store_32,
    store_64,
)

PLAIN, DELTAS = 0, 1
"""Encodings of numbers: PLAIN, DELTA_BINARY_PACKED."""
UNBOUNDED, SORTED, UNSORTED = 0, 1, 2
"""Modes of a page's bounds: not recorded; its first and last value; its least and greatest value,
which are searched for."""


class ColumnSegments(NamedTuple):
    """The addresses of a column's values, segment by segment.

    values: addresses of numbers, or of 32-bit offsets into bytes at `bytes_`.
    bits: addresses of validity, 0 where no value is null.
    skip: the index of the first row's bit there.
    firsts: the row that each segment begins with, and the number of all rows last.
    """

    values: Numbers
    bytes_: Numbers
    bits: Numbers
    skip: Numbers
    firsts: Numbers


class Payloads(NamedTuple):
    """The memory that pages are written to.

    rows: of every page but the last.
    to: the address of `room` bytes.
    ends: gets the offsets where pages end, counted from `to`.
    kept: gets how many values of each are not null.
    """

    rows: int
    to: int
    room: int
    ends: Numbers
    kept: Numbers


class NumberFormat(NamedTuple):
    """The storage format of numbers.

    encoding: PLAIN or DELTAS.
    width: bytes of a value in its segment.
    bounded: UNBOUNDED, SORTED or UNSORTED.
    """

    encoding: int
    width: int
    unsigned: bool
    nullable: bool
    bounded: int


@part
def is_set(bits: int, index: int) -> int:
    """Return a bit."""
    return (load_u8(bits + (index >> 3)) >> (index & 7)) & 1


@part
def _number(width: int, unsigned: bool, at: int) -> int:
    """Return a number of so many bytes; those of four are signed: so Parquet stores them all."""
    if width == 8:
        return load_i64(at)
    if width == 4:
        return load_i32(at)
    if width == 2:
        return load_u16(at) if unsigned else load_i16(at)
    return load_u8(at) if unsigned else load_i8(at)


@part
def _load_numbers(
    format: NumberFormat,
    values: int,
    bits: int,
    skip: int,
    loaded: Numbers,
    levels: Levels,
) -> int:
    """Load those of some values of a segment that are not null; return how many.

    values: the address of the first one. skip: the index of its bit. levels: one for each value.
    """
    width, unsigned = format.width, format.unsigned
    if bits == 0:
        for row in range(len(levels)):
            loaded[row] = _number(width, unsigned, values + width * row)
        levels[:] = 1
        return len(levels)
    kept = 0
    for row in range(len(levels)):
        there = is_set(bits, skip + row)
        loaded[kept] = _number(width, unsigned, values + width * row)
        levels[row] = there
        kept += there
    return kept


@part
def segment_of(firsts: Numbers, row: int) -> int:
    """Return which segment a row lies in."""
    segment = 0
    while firsts[segment + 1] <= row:
        segment += 1
    return segment


@part
def _load_number_page(
    format: NumberFormat,
    segments: ColumnSegments,
    row: int,
    last: int,
    loaded: Numbers,
    levels: Levels,
) -> int:
    """Load the values of some rows that are not null. Returns how many."""
    firsts = segments.firsts
    begin, count, segment = row, 0, segment_of(firsts, row)
    while row < last:
        first = row - firsts[segment]
        stop = min(last, firsts[segment + 1])
        count += _load_numbers(
            format,
            segments.values[segment] + format.width * first,
            segments.bits[segment],
            segments.skip[segment] + first,
            loaded[count:],
            levels[row - begin : stop - begin],
        )
        row = stop
        segment += 1
    return count


@kernel
def encode_numbers(
    format: NumberFormat, segments: ColumnSegments, payloads: Payloads, bounds: Numbers
) -> None:
    """Write pages of numbers. bounds: gets two for each page, the least and the greatest."""
    encoding, width, _, nullable, bounded = format
    rows, to, room, ends, kept = payloads
    loaded = np.empty(rows + 1, np.int64)
    levels = np.empty(rows, np.uint8)
    at = to
    for page in range(len(ends)):
        begin = page * rows
        last = min(segments.firsts[-1], begin + rows)
        count = _load_number_page(format, segments, begin, last, loaded, levels)
        if nullable:
            at = put_levels(at, levels, last - begin, count)
        if encoding == DELTAS:
            at = put_deltas(at, loaded, count, width < 8)
        elif width == 8:
            for index in range(count):
                store_64(at + 8 * index, loaded[index])
            at += 8 * count
        else:
            for index in range(count):
                store_32(at + 4 * index, loaded[index])
            at += 4 * count
        if bounded != UNBOUNDED:
            least = greatest = loaded[0]
            for index in range(1, count):
                least = min(least, loaded[index])
                greatest = max(greatest, loaded[index])
            bounds[2 * page] = least
            bounds[2 * page + 1] = greatest
        ends[page] = at - to
        kept[page] = count
        if CHECKED:
            assert at - to <= room
