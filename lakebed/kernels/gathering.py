"""Rows of many segments, copied into one buffer in a given order.

`segments` and `rows` say for each index of the output which row of which segment it holds.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lakebed.kernels.keys import Numbers, Words
from lakebed.kernels.merging import Rows, Segments
from lakebed.kernels.toolchain.compiling import CHECKED, kernel
from lakebed.kernels.toolchain.memory import (
    copy_16,
    copy_32,
    load_i32,
    load_u8,
    load_u64,
    prefetch,
    store_u8,
)

SLACK = 32
"""Bytes behind the last byte of an output of strings: copies are rounded up, then overwritten."""


@kernel
def gather_64(values: Numbers, segments: Segments, rows: Rows, out: Words) -> None:
    """Copy values of eight bytes. values: the address of each segment's."""
    for index in range(len(rows)):
        out[index] = load_u64(values[segments[index]] + 8 * np.int64(rows[index]))


@kernel
def gather_32(values: Numbers, segments: Segments, rows: Rows, out: npt.NDArray[np.int32]) -> None:
    """Copy values of four bytes."""
    for index in range(len(rows)):
        out[index] = load_i32(values[segments[index]] + 4 * np.int64(rows[index]))


@kernel
def gather_bits(
    bits: Numbers, skip: Numbers, segments: Segments, rows: Rows, out: npt.NDArray[np.uint8]
) -> int:
    """Copy bits; return how many are set. bits: addresses, 0 where all are set; skip: the index of
    the first row's bit. out: has a byte for each eight rows, rounded up."""
    count = 0
    gathered = 0
    for index in range(len(rows)):
        segment = segments[index]
        bit = 1
        if bits[segment] != 0:
            at = int(rows[index]) + int(skip[segment])
            bit = (load_u8(int(bits[segment]) + (at >> 3)) >> (at & 7)) & 1
        count += bit
        gathered |= bit << (index & 7)
        if index & 7 == 7:
            out[index >> 3] = gathered
            gathered = 0
    if len(rows) & 7:
        out[len(rows) >> 3] = gathered
    return count


@kernel
def rows_where(bits: int, skip: int, count: int, rows: Rows) -> int:
    """Write the numbers of the rows, out of `count`, whose bit is set; return how many.

    bits: an address; skip: the index of the first row's bit. rows: has room for all.
    """
    found = 0
    for row in range(count):
        at = row + skip
        rows[found] = row
        found += (load_u8(bits + (at >> 3)) >> (at & 7)) & 1
    return found


@kernel
def string_bytes(offsets: Numbers, segments: Segments, rows: Rows) -> int:
    """Return how many bytes strings have together. offsets: the address of each segment's."""
    count = 0
    for index in range(len(rows)):
        at = offsets[segments[index]] + 4 * np.int64(rows[index])
        count += load_i32(at + 4) - load_i32(at)
    return count


@kernel
def gather_bytes(
    offsets: Numbers,
    bytes_: Numbers,
    ends: Numbers,
    segments: Segments,
    rows: Rows,
    offsets_out: Rows,
    to: int,
    room: int,
) -> None:
    """Copy strings. ends: the address behind each segment's bytes; none is read from there on.

    to: the address of `room` bytes, at least as many as the strings have and SLACK more.
    """
    written = 0
    offsets_out[0] = 0
    count = len(rows)
    for index in range(count):
        far, near = min(index + 32, count - 1), min(index + 16, count - 1)
        prefetch(offsets[segments[far]] + 4 * np.int64(rows[far]))
        coming = segments[near]
        at = offsets[coming] + 4 * np.int64(rows[near])
        prefetch(bytes_[coming] + load_i32(at))
        prefetch(bytes_[coming] + load_i32(at + 4))
        segment = segments[index]
        at = offsets[segment] + 4 * np.int64(rows[index])
        start = load_i32(at)
        length = load_i32(at + 4) - start
        source = bytes_[segment] + start
        if CHECKED:
            assert length >= 0
            assert start >= 0
            assert source + length <= ends[segment]
            assert written + length + SLACK <= room
        target = to + written
        if source + ((length + 31) & -32) > ends[segment]:
            for byte in range(length):
                store_u8(target + byte, load_u8(source + byte))
        elif length <= 16:
            copy_16(target, source)
        else:
            byte = 0
            while byte < length:
                copy_32(target + byte, source + byte)
                byte += 32
        written += length
        offsets_out[index + 1] = written
