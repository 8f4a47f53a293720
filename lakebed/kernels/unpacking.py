"""Numbers out of Parquet's streams of bits: varints, DELTA_BINARY_PACKED, runs and packed groups.

Every function takes where a stream begins and where it must not be read from on, and returns the
address behind what it read; BROKEN where the bytes are no such stream.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lakebed.kernels.toolchain.compiling import part
from lakebed.kernels.toolchain.memory import load_u8, load_u64, store_32, store_64, store_u8

BROKEN = 0
"""An address that nothing has."""

Bytes = npt.NDArray[np.uint8]
SPARE_BYTES = 1024 + 16
"""Room for one miniblock of packed numbers, and to load a word that begins at its last byte."""

_MINIBLOCK_ROWS_MAX = 128
_VARINT_BYTES_MAX = 10


class _DeltaHead(NamedTuple):
    """The header in front of packed deltas.

    miniblocks: how many a block has.
    miniblock_rows: how many numbers a miniblock has.
    first: the first number.
    """

    miniblocks: int
    miniblock_rows: int
    first: np.uint64


@part
def as_signed(word: np.uint64) -> int:
    """Return the bits of a word as a signed number."""
    return np.int64(word)  # type: ignore[return-value]  # to numba it is one


@part
def read_varint(at: int, end: int) -> tuple[np.uint64, int]:
    """Return an unsigned number of seven bits a byte, and the address behind it."""
    value = np.uint64(0)
    for index in range(_VARINT_BYTES_MAX):
        if at >= end:
            return value, BROKEN
        byte = load_u8(at)
        at += 1
        value |= np.uint64(byte & 127) << np.uint64(7 * index)
        if byte < 128:
            return value, at
    return value, BROKEN


@part
def signed(value: np.uint64) -> np.uint64:
    """Return what a zigzag number stands for, modulo 2**64."""
    return (value >> np.uint64(1)) ^ (np.uint64(0) - (value & np.uint64(1)))


@part
def word_at(at: int, bit: int, width: int) -> np.uint64:
    """Return `width` bits, at most 64; nine bytes from the first are read."""
    byte, shift = at + (bit >> 3), np.uint64(bit & 7)
    word = load_u64(byte) >> shift
    if width > 56 and shift != 0:
        word |= np.uint64(load_u8(byte + 8)) << (np.uint64(64) - shift)
    return word


@part
def low_bits(width: int) -> np.uint64:
    """Return a number whose lowest bits are set."""
    if width == 64:
        return ~np.uint64(0)
    return (np.uint64(1) << np.uint64(width)) - np.uint64(1)


@part
def readable_bytes(at: int, size: int, end: int, spare: Bytes) -> int:
    """Return an address at which these bytes lie, with nine more that can be read behind them."""
    if at + size + 9 <= end:
        return at
    for index in range(size):
        spare[index] = load_u8(at + index)
    return int(spare.ctypes.data)


@part
def _delta_head(at: int, end: int, count: int) -> tuple[_DeltaHead, int]:
    """Return the head of a stream of exactly `count` numbers, and the address behind it."""
    block, at = read_varint(at, end)
    miniblocks, at = read_varint(at, end) if at != BROKEN else (np.uint64(0), BROKEN)
    total, at = read_varint(at, end) if at != BROKEN else (np.uint64(0), BROKEN)
    first, at = read_varint(at, end) if at != BROKEN else (np.uint64(0), BROKEN)
    miniblock_rows = 0
    if at == BROKEN or as_signed(total) != count or miniblocks == 0 or miniblocks > 512:
        at = BROKEN
    else:
        miniblock_rows = as_signed(block // miniblocks)
        whole = block == miniblocks * np.uint64(miniblock_rows) and miniblock_rows % 8 == 0
        if not whole or not 0 < miniblock_rows <= _MINIBLOCK_ROWS_MAX:
            at = BROKEN
    return _DeltaHead(as_signed(miniblocks), miniblock_rows, signed(first)), at


@part
def unpack_deltas(at: int, end: int, count: int, size: int, to: int, spare: Bytes) -> int:
    """Write a stream of DELTA_BINARY_PACKED, of exactly `count` numbers of `size` bytes, at `to`.

    Numbers are modulo 2**(8 * size), as their writers took them.
    """
    head, at = _delta_head(at, end, count)
    if at == BROKEN or count == 0:
        return at
    if size == 8:
        store_64(to, as_signed(head.first))
    else:
        store_32(to, as_signed(head.first))
    return _unpack_blocks(head, at, end, count, size, to, spare)


@part
def _unpack_blocks(
    head: _DeltaHead, at: int, end: int, count: int, size: int, to: int, spare: Bytes
) -> int:
    miniblocks, miniblock_rows, value = head
    done = 1
    while done < count:
        raw, at = read_varint(at, end)
        if at == BROKEN or at + miniblocks > end:
            return BROKEN
        least = signed(raw)
        widths = at
        at += miniblocks
        for index in range(miniblocks):
            if done >= count:
                break
            width = load_u8(widths + index)
            taken = miniblock_rows // 8 * width
            if width > 64 or at + taken > end:
                return BROKEN
            rows = min(miniblock_rows, count - done)
            value = _unpack_miniblock(
                readable_bytes(at, taken, end, spare),
                rows,
                width,
                least,
                value,
                size,
                to + size * done,
            )
            done += rows
            at += taken
    return at


@part
def _unpack_miniblock(
    at: int, rows: int, width: int, least: np.uint64, value: np.uint64, size: int, to: int
) -> np.uint64:
    """Write the sums of some packed differences; return the last sum."""
    mask = low_bits(width)
    if width == 0:
        for row in range(rows):
            value += least
            if size == 8:
                store_64(to + 8 * row, as_signed(value))
            else:
                store_32(to + 4 * row, as_signed(value))
    elif width > 56:
        for row in range(rows):
            value += least + (word_at(at, row * width, width) & mask)
            if size == 8:
                store_64(to + 8 * row, as_signed(value))
            else:
                store_32(to + 4 * row, as_signed(value))
    elif size == 8:
        for row in range(rows):
            bit = row * width
            value += least + ((load_u64(at + (bit >> 3)) >> np.uint64(bit & 7)) & mask)
            store_64(to + 8 * row, as_signed(value))
    else:
        for row in range(rows):
            bit = row * width
            value += least + ((load_u64(at + (bit >> 3)) >> np.uint64(bit & 7)) & mask)
            store_32(to + 4 * row, as_signed(value))
    return value


@part
def unpack_runs(at: int, end: int, count: int, width: int, size: int, to: int, spare: Bytes) -> int:
    """Write exactly `count` numbers of `size` bytes, 1 or 4, from Parquet's hybrid of runs and
    packed groups."""
    done = 0
    while done < count:
        head, at = read_varint(at, end)
        length = as_signed(head >> np.uint64(1))
        if at == BROKEN or length == 0:
            return BROKEN
        left, target = count - done, to + size * done
        if head & np.uint64(1):
            if length > (left + 7) // 8:
                return BROKEN
            at = _unpack_eights(at, end, length, left, width, size, target, spare)
            done += min(8 * length, left)
        else:
            if length > left:
                return BROKEN
            at = _repeat(at, end, length, width, size, target)
            done += length
        if at == BROKEN:
            return BROKEN
    return at


@part
def _repeat(at: int, end: int, length: int, width: int, size: int, to: int) -> int:
    value = 0
    for index in range((width + 7) // 8):
        if at >= end:
            return BROKEN
        value |= load_u8(at) << (8 * index)
        at += 1
    if value >> width != 0:
        return BROKEN
    for row in range(length):
        if size == 1:
            store_u8(to + row, value)
        else:
            store_32(to + 4 * row, value)
    return at


@part
def eight_bits(byte: int) -> np.uint64:
    """Return a word whose bytes are the bits of a byte, the lowest first."""
    each = np.uint64(byte) * np.uint64(0x0101010101010101) & np.uint64(0x8040201008040201)
    return (each + np.uint64(0x7F7F7F7F7F7F7F7F)) >> np.uint64(7) & np.uint64(0x0101010101010101)


@part
def bits_of_eight(flags: np.uint64) -> int:
    """Return a byte whose bits are the bytes of a word, each 0 or 1: what `eight_bits` undoes."""
    return as_signed(flags * np.uint64(0x0102040810204080) >> np.uint64(56))


@part
def _unpack_eights(
    at: int, end: int, length: int, count: int, width: int, size: int, to: int, spare: Bytes
) -> int:
    """Write at most `count` numbers from groups of eight."""
    mask = low_bits(width)
    for index in range(length):
        if at + width > end:
            return BROKEN
        if width == 1 and size == 1 and count - 8 * index >= 8:
            store_64(to + 8 * index, as_signed(eight_bits(load_u8(at))))
            at += 1
            continue
        where = readable_bytes(at, width, end, spare)
        for row in range(min(8, count - 8 * index)):
            value = as_signed(word_at(where, row * width, width) & mask)
            if size == 1:
                store_u8(to + 8 * index + row, value)
            else:
                store_32(to + 4 * (8 * index + row), value)
        at += width
    return at
