"""Keys of rows that lie in segments: comparing them, and their first eight bytes that differ.

A segment is one Arrow batch. Numbers are in their signed order, bytes in their unsigned one, and
the shorter first.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lakebed.kernels.toolchain.compiling import part
from lakebed.kernels.toolchain.memory import big_endian, load_i32, load_i64, load_u8, load_u64

Numbers = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
Table = np.ndarray[tuple[int, int], np.dtype[np.int64]]
"""An array of two dimensions: the type of what a kernel is given says how many it has."""

INT64, INT32, BYTES = 0, 1, 2
_WORD = 8


class Keys(NamedTuple):
    """The location of the keys of rows in memory.

    kinds: of each key field INT64, INT32 or BYTES.
    values, bytes_: of each field and segment the address of its numbers, or of its 32-bit offsets
        and its bytes.
    """

    kinds: Numbers
    values: Table
    bytes_: Table


@part
def number_at(kind: int, values: int, row: int) -> int:
    """Return a number of a field of kind INT64 or INT32."""
    if kind == INT32:
        return load_i32(values + 4 * row)
    return load_i64(values + 8 * row)


@part
def compare_bytes(
    a_values: int, a_bytes: int, a_row: int, b_values: int, b_bytes: int, b_row: int
) -> int:
    """Return a number below, at or above zero as one string is below, at or above another."""
    at = a_values + 4 * a_row
    a_start = load_i32(at)
    a_length = load_i32(at + 4) - a_start
    at = b_values + 4 * b_row
    b_start = load_i32(at)
    b_length = load_i32(at + 4) - b_start
    a_start += a_bytes
    b_start += b_bytes
    both = min(a_length, b_length)
    offset = 0
    while offset + _WORD <= both:
        a_word = load_u64(a_start + offset)
        b_word = load_u64(b_start + offset)
        if a_word != b_word:
            return -1 if big_endian(a_word) < big_endian(b_word) else 1
        offset += _WORD
    while offset < both:
        differ = load_u8(a_start + offset) - load_u8(b_start + offset)
        if differ != 0:
            return differ
        offset += 1
    return a_length - b_length


@part
def compare_rows(keys: Keys, a: int, a_row: int, b: int, b_row: int) -> int:
    """Return a number below, at or above zero as one row's key is to another's, by all fields.

    a, b: their segments.
    """
    kinds, values, bytes_ = keys
    for field in range(len(kinds)):
        if kinds[field] == BYTES:
            result = compare_bytes(
                values[field, a], bytes_[field, a], a_row, values[field, b], bytes_[field, b], b_row
            )
            if result != 0:
                return result
        else:
            a_number = number_at(kinds[field], values[field, a], a_row)
            b_number = number_at(kinds[field], values[field, b], b_row)
            if a_number != b_number:
                return -1 if a_number < b_number else 1
    return 0


@part
def shared_bytes(
    a_values: int, a_bytes: int, a_row: int, b_values: int, b_bytes: int, b_row: int, most: int
) -> int:
    """Return how many first bytes two strings share, at most so many."""
    at = a_values + 4 * a_row
    a_start = load_i32(at)
    a_length = load_i32(at + 4) - a_start
    at = b_values + 4 * b_row
    b_start = load_i32(at)
    b_length = load_i32(at + 4) - b_start
    both = min(most, min(a_length, b_length))  # noqa: PLW3301  compiled, two are faster than three
    a_start += a_bytes
    b_start += b_bytes
    offset = 0
    while offset < both and load_u8(a_start + offset) == load_u8(b_start + offset):
        offset += 1
    return offset


@part
def bytes_prefix(values: int, bytes_: int, row: int, skip: int) -> np.uint64:
    """Return eight bytes of a string after the first `skip`, padded with zeros, as a number."""
    at = values + 4 * row
    start = load_i32(at) + skip
    length = load_i32(at + 4) - start
    start += bytes_
    if length >= _WORD:
        return big_endian(load_u64(start))
    word = np.uint64(0)
    for index in range(length):
        word |= np.uint64(load_u8(start + index)) << np.uint64(56 - 8 * index)
    return word


@part
def left_shift(least: int, most: int) -> int:
    """Return by how many bits the range between two numbers can be shifted to the left."""
    span = np.uint64(most) - np.uint64(least)
    shift = 0
    while shift < 63 and (span >> np.uint64(63 - shift)) == 0:
        shift += 1
    return shift
