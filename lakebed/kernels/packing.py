"""Encodes what pages are made of: variable-length integers, levels, and integers packed by their
deltas.

https://parquet.apache.org/docs/file-format/data-pages/encodings/
Each function writes at an address and returns the address behind what it wrote; it may write some
bytes further, which the next overwrites.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lakebed.kernels.keys import Numbers
from lakebed.kernels.toolchain.compiling import part
from lakebed.kernels.toolchain.memory import leading_zeros, load_u64, store_32, store_64, store_u8
from lakebed.kernels.unpacking import as_signed, bits_of_eight

Levels = npt.NDArray[np.uint8]

MINIBLOCKS = 4
"""Miniblocks of a block, each of 32 values of 32 bits, or 64 of 64 bits, as pyarrow writes them."""
MINIBLOCK_MAX = 64

PAGE_ROOM = 1024
"""Bytes that deltas of a page may take besides nine for each value: its head, and a last
miniblock that is filled up with zeros."""


@part
def put_varint(to: int, value: np.uint64) -> int:
    """Write seven bits a byte."""
    rest = np.uint64(value)
    while rest >= np.uint64(128):
        store_u8(to, int(rest & np.uint64(127)) | 128)
        rest >>= np.uint64(7)
        to += 1
    store_u8(to, int(rest))
    return to + 1


@part
def zigzag(value: int) -> np.uint64:
    """Return a number whose sign is its lowest bit."""
    return np.uint64((value << 1) ^ (value >> 63))


@part
def put_levels(to: int, levels: Levels, count: int, kept: int) -> int:
    """Write definition levels of a column whose values may be null. kept: how many are not.

    One run where all are alike, else one bit each.
    """
    at = to + 4
    if kept in (0, count):
        at = put_varint(at, np.uint64(count << 1))
        store_u8(at, 1 if kept else 0)
        at += 1
    else:
        packed_groups = (count + 7) >> 3
        at = put_varint(at, np.uint64(packed_groups << 1 | 1))
        whole, flags, bits = count >> 3, levels.ctypes.data, 0
        for index in range(whole):
            store_u8(at + index, bits_of_eight(load_u64(flags + 8 * index)))
        for index in range(8 * whole, count):
            bits |= int(levels[index]) << (index & 7)
        if count & 7:
            store_u8(at + whole, bits)
        at += packed_groups
    store_32(to, at - to - 4)
    return at


@part
def _put_head(to: int, block: int, count: int, first: int) -> int:
    to = put_varint(to, np.uint64(block))
    to = put_varint(to, np.uint64(MINIBLOCKS))
    to = put_varint(to, np.uint64(count))
    return put_varint(to, zigzag(first))


@part
def put_zeros(to: int, count: int) -> int:
    """Write so many zeros as `put_deltas` does, of 32 bits."""
    block = MINIBLOCKS * 32
    to = _put_head(to, block, count, 0)
    size = -(-max(0, count - 1) // block) * (1 + MINIBLOCKS)
    for index in range(size):
        store_u8(to + index, 0)
    return to + size


@part
def put_deltas(to: int, values: Numbers, count: int, narrow: bool) -> int:
    """Write integers by DELTA_BINARY_PACKED. narrow: of 32 bits; their deltas wrap around.

    Takes room for `9 * count + PAGE_ROOM` bytes.
    """
    miniblock = 32 if narrow else 64
    block = MINIBLOCKS * miniblock
    to = _put_head(to, block, count, values[0] if count else 0)
    deltas = np.empty(MINIBLOCKS * MINIBLOCK_MAX, np.int64)
    for first in range(1, count, block):
        filled = min(block, count - first)
        least = 0x7FFFFFFFFFFFFFFF
        for index in range(filled):
            delta = int(values[first + index]) - int(values[first + index - 1])
            if narrow:
                delta = ((delta + 0x80000000) & 0xFFFFFFFF) - 0x80000000
            deltas[index] = delta
            least = min(least, delta)
        to = put_varint(to, zigzag(least))
        widths = to
        to += MINIBLOCKS
        for number in range(MINIBLOCKS):
            start = number * miniblock
            end = min(filled, start + miniblock)
            joined = np.uint64(0)
            for index in range(start, end):
                delta = deltas[index] - least
                deltas[index] = delta
                joined |= np.uint64(delta)
            for index in range(max(start, end), start + miniblock):
                deltas[index] = 0
            width = 64 - leading_zeros(joined)
            store_u8(widths + number, width)
            if width:
                to = _put_bits(to, deltas, start, start + miniblock, width)
    return to


@part
def _put_bits(to: int, values: Numbers, start: int, end: int, width: int) -> int:
    """Write the lowest bits of values, one behind the other. Whole words: 32 values at least."""
    word = np.uint64(0)
    filled = 0
    begin = to
    for index in range(start, end):
        value = np.uint64(values[index])
        word |= value << np.uint64(filled)
        filled += width
        if filled >= 64:
            store_64(to, as_signed(word))
            to += 8
            filled -= 64
            word = value >> np.uint64(width - filled) if filled else np.uint64(0)
    if filled:
        store_64(to, as_signed(word))
    return begin + (end - start) * width // 8
