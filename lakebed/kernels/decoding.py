"""Pages of fixed-width values, decompressed, into one Arrow buffer.

A page is a row of `pages`: where it begins and ends in memory, its first row in the output, its
rows, the number of its encoding, and its size decompressed. Every read is held against the page's
end, every write against its rows; a page must be used up exactly. Functions return `DECODED`, or
the index of the first page that is not what it should be.
"""

from __future__ import annotations

import numpy as np

from lakebed.kernels.keys import Numbers, Table
from lakebed.kernels.toolchain.compiling import part
from lakebed.kernels.toolchain.memory import (
    big_endian,
    copy_32,
    load_i32,
    load_i64,
    load_u8,
    load_u64,
    store_32,
    store_64,
    store_u8,
)
from lakebed.kernels.unpacking import (
    BROKEN,
    SPARE_BYTES,
    Bytes,
    as_signed,
    bits_of_eight,
    unpack_deltas,
    unpack_runs,
)

AT, END, FIRST, ROWS, ENCODING, SIZE = range(6)
PAGE_FACTS = 6

PLAIN, DICTIONARY, DELTA_NUMBERS, DELTA_LENGTHS, DELTA_BYTES = 0, 8, 5, 6, 7
"""Parquet's numbers of encodings."""

DECODED = -1
_LENGTH_BYTES = 4


@part
def read_presence(at: int, end: int, present: Bytes, spare: Bytes) -> tuple[int, int]:
    """Write 1 for each row that has a value, 0 for a null; return how many have, and the address
    behind the levels."""
    if at + _LENGTH_BYTES > end:
        return 0, BROKEN
    stop = at + _LENGTH_BYTES + (load_i32(at) & 0xFFFFFFFF)
    if stop > end:
        return 0, BROKEN
    rows = len(present)
    if unpack_runs(at + _LENGTH_BYTES, stop, rows, 1, 1, present.ctypes.data, spare) != stop:
        return 0, BROKEN
    count = 0
    for row in range(rows):
        count += present[row]
    return count, stop


@part
def page_values(page: Numbers, optional: bool, present: Bytes, spare: Bytes) -> tuple[int, int]:
    """Return how many values a page has that are not null, and where they begin."""
    if not optional:
        return page[ROWS], page[AT]
    first = page[FIRST]
    return read_presence(page[AT], page[END], present[first : first + page[ROWS]], spare)


@part
def copy_exactly(to: int, source: int, size: int) -> None:
    """Copy bytes, and no others."""
    offset = 0
    while offset + 32 <= size:
        copy_32(to + offset, source + offset)
        offset += 32
    while offset < size:
        store_u8(to + offset, load_u8(source + offset))
        offset += 1


@part
def _spread(to: int, size: int, count: int, present: Bytes) -> None:
    """Move values to the rows that have one, from the last on; the rows of nulls become zero."""
    source = count
    for row in range(len(present) - 1, -1, -1):
        if source == row + 1:
            return
        value = 0
        if present[row]:
            source -= 1
            value = load_i64(to + 8 * source) if size == 8 else load_i32(to + 4 * source)
        if size == 8:
            store_64(to + 8 * row, value)
        else:
            store_32(to + 4 * row, value)


@part
def decode_numbers(pages: Table, optional: bool, size: int, present: Bytes, to: int) -> int:
    """Write numbers of four or eight bytes at `to`, zero where they are null.

    present: becomes 1 for each row with a value, where the column is optional.
    """
    spare = np.empty(SPARE_BYTES, np.uint8)
    for index in range(len(pages)):
        page = pages[index]
        first, rows, end = page[FIRST], page[ROWS], page[END]
        count, at = page_values(page, optional, present, spare)
        if at == BROKEN:
            return index
        target = to + size * first
        if page[ENCODING] == PLAIN:
            if at + size * count != end:
                return index
            copy_exactly(target, at, size * count)
        elif page[ENCODING] == DELTA_NUMBERS:
            if unpack_deltas(at, end, count, size, target, spare) != end:
                return index
        else:
            return index
        if count < rows:
            _spread(target, size, count, present[first : first + rows])
    return DECODED


@part
def decode_bits(pages: Table, optional: bool, present: Bytes, to: int) -> int:
    """Write a bit at `to` for each truth value, plainly encoded, 0 where it is null."""
    spare = np.empty(SPARE_BYTES, np.uint8)
    rows = pages[len(pages) - 1, FIRST] + pages[len(pages) - 1, ROWS]
    out = np.zeros(rows, np.uint8)
    for index in range(len(pages)):
        page = pages[index]
        first, end = page[FIRST], page[END]
        count, at = page_values(page, optional, present, spare)
        if at == BROKEN or page[ENCODING] != PLAIN or at + (count + 7) // 8 != end:
            return index
        bit = 0
        for row in range(first, first + page[ROWS]):
            if not optional or present[row]:
                out[row] = (load_u8(at + (bit >> 3)) >> (bit & 7)) & 1
                bit += 1
    pack_bits(out, to)
    return DECODED


@part
def pack_bits(flags: Bytes, to: int) -> int:
    """Write a bit at `to` for each flag, which is 0 or 1; return how many are 1."""
    count = byte = 0
    for index in range(len(flags)):
        count += flags[index]
    whole = len(flags) >> 3
    at = flags.ctypes.data
    for index in range(whole):
        store_u8(to + index, bits_of_eight(load_u64(at + 8 * index)))
    for index in range(8 * whole, len(flags)):
        byte |= flags[index] << (index & 7)
    if len(flags) & 7:
        store_u8(to + whole, byte)
    return count


@part
def decode_decimals(pages: Table, optional: bool, size: int, present: Bytes, to: int) -> int:
    """Write numbers of 16 bytes, little-endian, at `to`, from plain ones of `size`, big-endian."""
    spare = np.empty(SPARE_BYTES, np.uint8)
    for index in range(len(pages)):
        page = pages[index]
        first, rows, end = page[FIRST], page[ROWS], page[END]
        count, at = page_values(page, optional, present, spare)
        if at == BROKEN or page[ENCODING] != PLAIN or at + size * count != end:
            return index
        for row in range(first, first + rows):
            low, high = np.uint64(0), np.uint64(0)
            if not optional or present[row]:
                if size == 16:
                    high, low = big_endian(load_u64(at)), big_endian(load_u64(at + 8))
                else:
                    low, high = _wide(at, size)
                at += size
            store_64(to + 16 * row, as_signed(low))
            store_64(to + 16 * row + 8, as_signed(high))
    return DECODED


@part
def _wide(at: int, size: int) -> tuple[np.uint64, np.uint64]:
    """Return the two words of a signed number of less than 16 bytes, big-endian."""
    fill = np.uint64(0) - np.uint64(load_u8(at) >> 7)
    low, high = fill, fill
    for index in range(size):
        high = (high << np.uint64(8)) | (low >> np.uint64(56))
        low = (low << np.uint64(8)) | np.uint64(load_u8(at + index))
    return low, high
