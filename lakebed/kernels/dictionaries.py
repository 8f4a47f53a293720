"""Pages of strings that come again and again: their indices in a dictionary, which is a page, too.

What segments are is said in `encoding`. A string's index is that of its first coming.
"""

from __future__ import annotations

import numpy as np

from lakebed.kernels.encoding import ColumnSegments, Payloads
from lakebed.kernels.encoding_strings import copy_bytes, load_string_page, shared_bytes
from lakebed.kernels.keys import Numbers
from lakebed.kernels.packing import PAGE_ROOM, put_levels, put_varint
from lakebed.kernels.toolchain.compiling import CHECKED, kernel, part
from lakebed.kernels.toolchain.memory import (
    leading_zeros,
    load_i32,
    load_i64,
    load_u8,
    load_u64,
    store_32,
    store_64,
    store_u8,
)
from lakebed.kernels.unpacking import as_signed

STRINGS_MAX = 1 << 13
"""Strings of a dictionary, which is small: it is chosen by a look at half as many."""
BYTES_MAX = 1 << 20
"""Most bytes of a dictionary's page; pyarrow gives it up there, too."""

_SLOT_BITS = 14
SLOTS = 1 << _SLOT_BITS
"""Slots, twice as many as strings."""
WORDS = 4 * STRINGS_MAX + 4
_PACKED = 8
"""Numbers that are packed together."""
_PACKED_GROUPS_MAX = 63
"""Most groups of packed numbers under one head, which is one byte."""
_LENGTH_BYTES = 4
_WORD = 8
_ENTRY = 4 * _WORD
_ODD = np.uint64(0x9E3779B97F4A7C15)
"""Spreads bits upwards, when numbers are multiplied by it."""


@part
def _first_word(at: int, length: int) -> np.uint64:
    """Return the first eight bytes of a string, or all of a shorter one."""
    if length >= _WORD:
        return load_u64(at)
    if length >= 4:
        return np.uint64(load_i32(at)) ^ np.uint64(load_i32(at + length - 4)) << np.uint64(32)
    if length == 0:
        return np.uint64(0)
    middle = np.uint64(load_u8(at + (length >> 1))) << np.uint64(8)
    return np.uint64(load_u8(at)) | middle | np.uint64(load_u8(at + length - 1)) << np.uint64(16)


@part
def _last_word(at: int, length: int) -> np.uint64:
    """Return the last eight bytes of a string that has more."""
    return load_u64(at + length - _WORD) if length > _WORD else np.uint64(0)


@part
def _slot(first: np.uint64, last: np.uint64, at: int, length: int) -> int:
    """Return where to look for a string first."""
    mixed = (first ^ np.uint64(length)) * _ODD
    mixed = (mixed ^ mixed >> np.uint64(32) ^ last) * _ODD
    offset = _WORD
    while offset < length - _WORD:
        mixed = (mixed ^ mixed >> np.uint64(32) ^ load_u64(at + offset)) * _ODD
        offset += _WORD
    mixed = (mixed ^ mixed >> np.uint64(32)) * _ODD
    return as_signed(mixed >> np.uint64(64 - _SLOT_BITS))


@part
def _middle_is(a: int, b: int, length: int) -> bool:
    return length <= 2 * _WORD or shared_bytes(a, b, length) == length


@part
def _index_of(at: int, length: int, slots: int, words: int, count: int) -> int:
    """Return a string's index in the dictionary; `count`, where it is put, if it is new.

    Of each string `words` has address, length and the first and last word, which with its length
    are all of a short one. Addresses, not arrays: those are counted when they are passed.
    """
    first, last = _first_word(at, length), _last_word(at, length)
    slot = _slot(first, last, at, length)
    while True:
        index = load_i64(slots + _WORD * slot) - 1
        if index < 0:
            break
        word = words + _ENTRY * index
        same = load_u64(word + 2 * _WORD) == first and load_u64(word + 3 * _WORD) == last
        if same and load_i64(word + _WORD) == length and _middle_is(load_i64(word), at, length):
            return index
        slot = (slot + 1) & (SLOTS - 1)
    store_64(slots + _WORD * slot, count + 1)
    word = words + _ENTRY * count
    store_64(word, at)
    store_64(word + _WORD, length)
    store_64(word + 2 * _WORD, as_signed(first))
    store_64(word + 3 * _WORD, as_signed(last))
    return count


@part
def _put_packed(to: int, codes: Numbers, first: int, count: int, width: int) -> int:
    """Write eight numbers of so many bits, zeros behind the last."""
    word = np.uint64(0)
    filled = 0
    at = to
    for index in range(first, min(count, first + _PACKED)):
        code = np.uint64(codes[index])
        word |= code << np.uint64(filled)
        filled += width
        if filled >= 64:
            store_64(at, as_signed(word))
            at += 8
            filled -= 64
            word = code >> np.uint64(width - filled) if filled else np.uint64(0)
    store_64(at, as_signed(word))
    store_64(at + 8, 0)
    return to + width


@part
def _equal_from(codes: Numbers, first: int, count: int) -> int:
    """Return how many numbers, from one on, are the same."""
    last = first + 1
    while last < count and codes[last] == codes[first]:
        last += 1
    return last - first


@part
def _put_codes(to: int, codes: Numbers, count: int, width: int) -> int:
    """Write numbers of so many bits, runs of eight or more as one number and how often it comes:
    the bytes that pyarrow writes."""
    head = packed_groups = index = 0
    while index < count:
        equal = _equal_from(codes, index, count)
        if equal >= _PACKED or (index + equal == count and not packed_groups):
            if packed_groups:
                store_u8(head, packed_groups << 1 | 1)
                packed_groups = 0
            to = put_varint(to, np.uint64(equal << 1))
            store_32(to, codes[index])
            to += (width + 7) >> 3
            index += equal
            continue
        if not packed_groups:
            head = to
            to += 1
        to = _put_packed(to, codes, index, count, width)
        index += _PACKED
        packed_groups += 1
        if packed_groups == _PACKED_GROUPS_MAX:
            store_u8(head, packed_groups << 1 | 1)
            packed_groups = 0
    if packed_groups:
        store_u8(head, packed_groups << 1 | 1)
    return to


@part
def _width(count: int) -> int:
    """Return how many bits indices in a dictionary have, as pyarrow counts them."""
    return count if count < 2 else 64 - leading_zeros(np.uint64(count - 1))


@part
def _put_dictionary(to: int, words: Numbers, count: int) -> int:
    """Write the strings of a dictionary, each with its length."""
    for index in range(count):
        length = words[4 * index + 1]
        store_32(to, length)
        copy_bytes(to + _LENGTH_BYTES, words[4 * index], length)
        to += _LENGTH_BYTES + length
    return to


@kernel
def encode_repeated(
    nullable: bool,
    segments: ColumnSegments,
    slots: Numbers,
    words: Numbers,
    payloads: Payloads,
    sizes: Numbers,
) -> int:
    """Write pages of indices in a dictionary, and behind them the dictionary's page.

    slots, words: zeros, as many as SLOTS and WORDS say; the caller's, since an array of a kernel's
    own is freed when nothing but its address is used. payloads: its ends get the dictionary's, too.
    sizes: the bytes of each page's strings. Returns how many strings the dictionary has; -1: too
    many.
    """
    rows, to, room, ends, kept = payloads
    slots_at, words_at = int(slots.ctypes.data), int(words.ctypes.data)
    starts, lengths = np.empty(rows + 1, np.int64), np.empty(rows + 1, np.int64)
    levels = np.empty(rows, np.uint8)
    found = found_bytes = 0
    at = to
    for page in range(len(ends) - 1):
        begin = page * rows
        last = min(segments.firsts[-1], begin + rows)
        count = load_string_page(segments, begin, last, starts, lengths, levels)
        sizes[page] = 0
        for index in range(count):
            length = lengths[index]
            sizes[page] += length
            code = _index_of(starts[index], length, slots_at, words_at, found)
            starts[index] = code
            if code == found:
                found += 1
                found_bytes += _LENGTH_BYTES + length
                if found > STRINGS_MAX:
                    return -1
        if found_bytes >= BYTES_MAX:
            return -1
        if CHECKED:
            assert at - to + 9 * count + PAGE_ROOM <= room
        if nullable:
            at = put_levels(at, levels, last - begin, count)
        store_u8(at, _width(found))
        at = _put_codes(at + 1, starts, count, _width(found))
        ends[page] = at - to
        kept[page] = count
    if CHECKED:
        assert at - to + found_bytes <= room
    ends[-1] = _put_dictionary(at, words, found) - to
    slots[0] = found  # an array's memory is given back behind its last use, addresses do not count
    return found
