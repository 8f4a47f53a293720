"""The order of rows that are in no order: by radix on the first bits in which their keys differ.

Rows with equal first bits are a bucket. It is sorted in the same way by the next bits in
which it differs, and a small one by comparing its keys.
"""

from __future__ import annotations

import numpy as np

from lakebed.kernels.keys import (
    BYTES,
    Keys,
    Numbers,
    Words,
    bytes_prefix,
    compare_rows,
    left_shift,
    number_at,
    shared_bytes,
)
from lakebed.kernels.merging import Order
from lakebed.kernels.toolchain.compiling import CHECKED, kernel, part

BUCKET_MIN = 24
"""Fewest rows of a bucket that gets a pass: comparing the keys of fewer rows costs less."""

_NARROWED_MIN = 256
"""Fewest rows whose texts are narrowed: counting the letters of fewer costs more than it saves."""

_DIGIT_BITS = 11
_DIGITS = 1 << _DIGIT_BITS


@part
def _text_difference(
    values: Numbers, bytes_: Numbers, codes: Numbers, row_bits: int
) -> tuple[bool, int]:
    """Return whether any of these rows' strings differ, and how many bytes they share."""
    row_mask = (1 << row_bits) - 1
    first, first_row = codes[0] >> row_bits, codes[0] & row_mask
    length = _length(values[first], first_row)
    shared, differ = length, False
    for code in codes:
        segment, row = code >> row_bits, code & row_mask
        shared = shared_bytes(
            values[first], bytes_[first], first_row, values[segment], bytes_[segment], row, shared
        )
        differ |= _length(values[segment], row) != length
        if shared == 0 and length > 0:
            return True, 0
    return differ or shared != length, shared


@part
def _length(values: int, row: int) -> int:
    return number_at(1, values, row + 1) - number_at(1, values, row)


@part
def _narrow(words: Words, mask: np.uint64) -> None:
    """Give each byte of words the bits that distinguish those that occur, the same order kept: more
    of a text fits into the bits above the mask."""
    occurs = np.zeros(256, np.bool_)
    for word in words:
        for step in range(8):
            occurs[np.int64(word >> np.uint64(8 * step)) & 255] = True
    ranks, count = np.zeros(256, np.uint64), 0
    for byte in range(256):
        ranks[byte] = count
        count += int(occurs[byte])
    width = 1
    while (1 << width) < count:
        width += 1
    room = 64
    while room > 0 and (mask >> np.uint64(64 - room)) != 0:
        room -= 1
    fit = min(8, room // width)
    for index in range(len(words)):
        word, narrow = words[index], np.uint64(0)
        for step in range(fit):
            letter = np.int64(word >> np.uint64(56 - 8 * step)) & 255
            narrow = (narrow << np.uint64(width)) | ranks[letter]
        words[index] = narrow << np.uint64(64 - width * fit)


@part
def _pack_texts(
    values: Numbers,
    bytes_: Numbers,
    codes: Numbers,
    row_bits: int,
    skip: int,
    mask: np.uint64,
    out: Words,
) -> None:
    """Write for each row its code below what follows the bytes that all strings share.

    Where only zeros follow, which look like nothing, the strings that end come first.
    """
    row_mask = (1 << row_bits) - 1
    for index in range(len(codes)):
        code = codes[index]
        segment = code >> row_bits
        out[index] = bytes_prefix(values[segment], bytes_[segment], code & row_mask, skip)
    if len(codes) >= _NARROWED_MIN:
        _narrow(out[: len(codes)], mask)
    alike = True
    for index in range(len(codes)):
        out[index] = (out[index] & ~mask) | np.uint64(codes[index])
        alike &= (out[index] ^ out[0]) <= mask
    if alike:
        for index in range(len(codes)):
            code = codes[index]
            goes_on = _length(values[code >> row_bits], code & row_mask) > skip
            out[index] = (np.uint64(goes_on) << np.uint64(63)) | np.uint64(code)


@part
def _pack(keys: Keys, codes: Numbers, row_bits: int, mask: np.uint64, out: Words) -> bool:
    """Write for each row its code below the first bits of its key, after all that these share.

    Returns whether any keys differ; if none do, nothing is written.
    """
    kinds, values, bytes_ = keys
    row_mask = (1 << row_bits) - 1
    for field in range(len(kinds)):
        kind, where, at = kinds[field], values[field], bytes_[field]
        if kind == BYTES:
            differ, skip = _text_difference(where, at, codes, row_bits)
            if not differ:
                continue
            _pack_texts(where, at, codes, row_bits, skip, mask, out)
            return True
        least = number_at(kind, where[codes[0] >> row_bits], codes[0] & row_mask)
        most = least
        for index in range(len(codes)):
            code = codes[index]
            number = number_at(kind, where[code >> row_bits], code & row_mask)
            least, most = min(least, number), max(most, number)
            out[index] = np.uint64(number)
        if least == most:
            continue
        base, shift = np.uint64(least), np.uint64(left_shift(least, most))
        for index in range(len(codes)):
            prefix = (out[index] - base) << shift
            out[index] = (prefix & ~mask) | np.uint64(codes[index])
        return True
    return False


@part
def _radix(words: Words, spare: Words, low: int) -> Words:
    """Sort by the bits from `low` on; return which of the two arrays holds the result."""
    passes = (64 - low + _DIGIT_BITS - 1) // _DIGIT_BITS
    counts = np.zeros((passes, _DIGITS), np.int64)
    mask = np.uint64(_DIGITS - 1)
    for word in words:
        for step in range(passes):
            counts[step, np.int64((word >> np.uint64(low + _DIGIT_BITS * step)) & mask)] += 1
    for step in range(passes):
        shift = np.uint64(low + _DIGIT_BITS * step)
        if counts[step, np.int64((words[0] >> shift) & mask)] == len(words):
            continue
        next_index = counts[step]
        before = 0
        for digit in range(_DIGITS):
            count = next_index[digit]
            next_index[digit] = before
            before += count
        for word in words:
            at = np.int64((word >> shift) & mask)
            spare[next_index[at]] = word
            next_index[at] += 1
        words, spare = spare, words
    return words


@part
def _insert(keys: Keys, codes: Numbers, row_bits: int) -> None:
    """Sort a few rows by comparing their keys."""
    row_mask = (1 << row_bits) - 1
    for index in range(1, len(codes)):
        code = codes[index]
        segment, row = code >> row_bits, code & row_mask
        at = index
        while at > 0:
            other = codes[at - 1]
            if compare_rows(keys, segment, row, other >> row_bits, other & row_mask) >= 0:
                break
            codes[at] = other
            at -= 1
        codes[at] = code


@part
def _split(
    keys: Keys,
    bucket: Numbers,
    row_bits: int,
    ascending: Words,
    mask: np.uint64,
    todo: Numbers,
) -> int:
    """Put a bucket in the order of its packed words; sort what ties, if it is small.

    Returns how many larger buckets are left; `todo` has the index and the size of each.
    """
    size, left, same = len(bucket), 0, 0
    for index in range(size):
        bucket[index] = np.int64(ascending[index] & mask)
        if index + 1 < size and (ascending[index] ^ ascending[index + 1]) <= mask:
            continue
        count = index + 1 - same
        if count >= BUCKET_MIN:
            todo[2 * left] = same
            todo[2 * left + 1] = count
            left += 1
        elif count > 1:
            _insert(keys, bucket[same : index + 1], row_bits)
        same = index + 1
    return left


@part
def _number_rows(starts: Numbers, row_bits: int, codes: Numbers) -> int:
    """Write the code of every row: its segment above its row. Returns the bits of a code."""
    for segment in range(len(starts) - 1):
        before = starts[segment]
        for row in range(starts[segment + 1] - before):
            codes[before + row] = (segment << row_bits) | row
    bits = row_bits
    while (len(starts) - 2) >> (bits - row_bits) > 0:
        bits += 1
    return bits


@kernel
def sort_order(keys: Keys, starts: Numbers, row_bits: int, out: Order) -> None:
    """Write all rows in the order of their keys.

    starts: rows before each segment, and all. row_bits: of the largest number of a row in its
    segment.
    """
    total = starts[len(starts) - 1]
    codes = np.empty(total, np.int64)
    bits = _number_rows(starts, row_bits, codes)
    mask = (np.uint64(1) << np.uint64(bits)) - np.uint64(1)
    packed, spare = np.empty(total, np.uint64), np.empty(total, np.uint64)
    todo = np.empty(2 * (total // BUCKET_MIN + 2), np.int64)  # buckets to sort: they are disjoint
    todo[0], todo[1] = 0, total
    left = 1
    while left > 0:
        left -= 1
        begin, size = todo[2 * left], todo[2 * left + 1]
        bucket = codes[begin : begin + size]
        if not _pack(keys, bucket, row_bits, mask, packed[:size]):
            continue
        ascending = _radix(packed[:size], spare[:size], bits)
        found = todo[2 * left :]
        more = _split(keys, bucket, row_bits, ascending, mask, found)
        for index in range(more):
            found[2 * index] += begin
        left += more
    row_mask = (1 << row_bits) - 1
    for index in range(total):
        segment, row = codes[index] >> row_bits, codes[index] & row_mask
        if CHECKED:
            assert row < starts[segment + 1] - starts[segment]
        out.segments[index] = segment
        out.rows[index] = row
