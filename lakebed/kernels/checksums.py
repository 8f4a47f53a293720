"""CRC-32, as pages and blocks have it, inside kernels: what `zlib.crc32` gives.

Where the processor multiplies without carries, 64 bytes at a time are folded into the next 64:
"Fast CRC Computation for Generic Polynomials Using PCLMULQDQ", Intel 2009, with its constants. What
is left, or everything on other processors, goes through tables, eight bytes at a time.
"""

from __future__ import annotations

import numpy as np

from lakebed.kernels.keys import Numbers
from lakebed.kernels.toolchain.compiling import part
from lakebed.kernels.toolchain.memory import fold_crc32, folds_crc32, load_u8, load_u64

_POLYNOMIAL = 0xEDB88320
_ONES = 0xFFFFFFFF
_FOLDED = 64
"""Bytes that are folded at a time."""


def _tables() -> Numbers:
    """Return of each byte, at each index of a word, what it makes of the bytes behind it."""
    tables = np.zeros((8, 256), np.int64)
    for byte in range(256):
        rest = byte
        for _ in range(8):
            rest = rest >> 1 ^ (_POLYNOMIAL if rest & 1 else 0)
        tables[0, byte] = rest
    for index in range(1, 8):
        before = tables[index - 1]
        tables[index] = before >> 8 ^ tables[0][before & 0xFF]
    return tables.ravel()


def _powers() -> Numbers:
    """Return what 2 ** index zero bits make of a checksum: a factor."""
    powers = [1 << 30]  # one bit
    while len(powers) < 64:
        powers.append(_product(powers[-1], powers[-1]))
    return np.array(powers, np.int64)


def _product(a: int, b: int) -> int:
    """Return the product of two polynomials, the highest power in the lowest bit."""
    product = 0
    bit = 1 << 31
    while bit:
        if a & bit:
            product ^= b
        b = b >> 1 ^ (_POLYNOMIAL if b & 1 else 0)
        bit >>= 1
    return product


_TABLES = _tables()
_POWERS = _powers()
_multiplied = part(_product)


@part
def _word(rest: int, word: np.uint64) -> int:
    """Return what is left after eight more bytes."""
    both = word ^ np.uint64(rest)
    found = 0
    for index in range(8):
        byte = int(both >> np.uint64(8 * index) & np.uint64(0xFF))
        found ^= _TABLES[(7 - index) * 256 + byte]
    return found


@part
def crc32(before: int, at: int, size: int) -> int:
    """Return the CRC-32 of some bytes behind others. before: that of the others, 0 for none."""
    rest = before ^ _ONES
    if size >= _FOLDED and folds_crc32():
        folded = size // _FOLDED
        low, high = fold_crc32(rest, at, folded)
        rest = _word(_word(0, low), high)
        at += _FOLDED * folded
        size -= _FOLDED * folded
    while size >= 8:
        rest = _word(rest, load_u64(at))
        at += 8
        size -= 8
    for index in range(size):
        rest = rest >> 8 ^ _TABLES[(rest ^ load_u8(at + index)) & 0xFF]
    return rest ^ _ONES


@part
def joined_crc32(first: int, second: int, size: int) -> int:
    """Return the CRC-32 of bytes of which the second ones are so many."""
    factor = 1 << 31
    index = 3
    while size:
        if size & 1:
            factor = _multiplied(_POWERS[index], factor)
        size >>= 1
        index += 1
    return _multiplied(factor, first) ^ second
