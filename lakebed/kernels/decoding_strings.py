"""Pages of strings into Arrow's offsets and bytes, in two calls: how long they are, then they.

Pages as in `decoding`. Between the calls the room for all bytes is made.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lakebed.kernels.decoding import (
    DELTA_BYTES,
    DELTA_LENGTHS,
    DICTIONARY,
    ENCODING,
    END,
    FIRST,
    PLAIN,
    ROWS,
    copy_exactly,
    page_values,
)
from lakebed.kernels.gathering import SLACK
from lakebed.kernels.keys import Numbers, Table
from lakebed.kernels.toolchain.compiling import part
from lakebed.kernels.toolchain.memory import copy_16, copy_32, load_i32, load_u8, store_32, store_u8
from lakebed.kernels.unpacking import BROKEN, SPARE_BYTES, Bytes, unpack_deltas, unpack_runs

Lengths = npt.NDArray[np.int32]
STRINGS_BYTES_MAX = (1 << 31) - 1
"""Most bytes of the strings of one call: offsets have 32 bits."""
NO_STRINGS = -1

_WORD = 4


class OpenedPages(NamedTuple):
    """Pages, and what the first call hands to the second.

    pages: as in `decoding`.
    present: 1 for each row that has a value, where the column is optional.
    shared: of each row's value the bytes that it shares with the last one, or its index in the
        dictionary.
    own: the bytes that stand in the page.
    bytes_at: of each page where its bytes begin.
    """

    pages: Table
    present: Bytes
    shared: Lengths
    own: Lengths
    bytes_at: Numbers


class DictionaryWords(NamedTuple):
    """The strings of a dictionary.

    offsets: one of no strings where there is none.
    at, end: their bytes.
    """

    offsets: Lengths
    at: int
    end: int


@part
def measure_strings(
    strings: OpenedPages, optional: bool, dictionary: DictionaryWords, offsets: int
) -> int:
    """Write the offsets of all strings at an address, and what `fill_strings` needs. Returns how
    many bytes they have, NO_STRINGS where a page is not what it should be."""
    pages, present, shared, own, bytes_at = strings
    words = len(dictionary.offsets) - 1
    spare = np.empty(SPARE_BYTES, np.uint8)
    total = 0
    store_32(offsets, 0)
    for index in range(len(pages)):
        page = pages[index]
        first, rows = page[FIRST], page[ROWS]
        last = first + rows
        count, at = page_values(page, optional, present, spare)
        if at == BROKEN:
            return NO_STRINGS
        at = _lengths(page, at, count, words, shared[first:last], own[first:last], spare)
        if at == BROKEN:
            return NO_STRINGS
        bytes_at[index] = at
        if page[ENCODING] == DELTA_LENGTHS:
            there, to = present[first:last], offsets + _WORD * first
            total = _offsets_of(own[first:last], total, optional, there, to)
        else:
            if count < rows:
                _spread(shared[first:last], count, present[first:last])
                _spread(own[first:last], count, present[first:last])
            total = _offsets(page, total, dictionary.offsets, strings, optional, offsets)
        if total == NO_STRINGS:
            return NO_STRINGS
    return total


@part
def _lengths(
    page: Numbers, at: int, count: int, words: int, shared: Lengths, own: Lengths, spare: Bytes
) -> int:
    """Write both lengths of the values of a page, nulls left out; return where its bytes begin.

    A page of strings that share nothing becomes one of DELTA_LENGTHS.
    """
    encoding, end = page[ENCODING], page[END]
    shared[:] = 0
    if encoding == PLAIN:
        return _plain_lengths(at, end, count, own)
    if encoding == DICTIONARY:
        own[:] = 0
        if at >= end:
            return BROKEN
        width = load_u8(at)
        if width > 31 or (count > 0 and words == 0):
            return BROKEN
        return _exactly(
            unpack_runs(at + 1, end, count, width, _WORD, shared.ctypes.data, spare), end
        )
    if encoding == DELTA_BYTES:
        at = unpack_deltas(at, end, count, _WORD, shared.ctypes.data, spare)
        if at == BROKEN:
            return BROKEN
        if not _any(shared, count):
            page[ENCODING] = DELTA_LENGTHS
    elif encoding != DELTA_LENGTHS:
        return BROKEN
    at = unpack_deltas(at, end, count, _WORD, own.ctypes.data, spare)
    if at == BROKEN:
        return BROKEN
    total = 0
    for row in range(count):
        if own[row] < 0:
            return BROKEN
        total += own[row]
    return at if at + total == end else BROKEN


@part
def _any(numbers: Lengths, count: int) -> bool:
    """Return whether any of the first numbers is not zero."""
    found = 0
    for index in range(count):
        found |= numbers[index]
    return found != 0


@part
def _exactly(at: int, end: int) -> int:
    return at if at == end else BROKEN


@part
def _plain_lengths(at: int, end: int, count: int, own: Lengths) -> int:
    begin = at
    for row in range(count):
        if at + _WORD > end:
            return BROKEN
        length = load_i32(at)
        if length < 0 or at + _WORD + length > end:
            return BROKEN
        own[row] = length
        at += _WORD + length
    return begin if at == end else BROKEN


@part
def _spread(numbers: Lengths, count: int, present: Bytes) -> None:
    source = count
    for row in range(len(present) - 1, -1, -1):
        if source == row + 1:
            return
        source -= present[row]
        numbers[row] = numbers[source] * present[row]  # no branch: nulls come at random


@part
def _offsets_of(own: Lengths, total: int, optional: bool, present: Bytes, offsets: int) -> int:
    """Write where strings of a page end that lie together, the lengths of those that are null left
    out; return the bytes so far, NO_STRINGS where they are too many. offsets: of the first."""
    if not optional:
        for row in range(len(own)):
            total += own[row]
            store_32(offsets + _WORD * (row + 1), total)
    else:
        index = 0
        for row in range(len(own)):
            total += own[index] * present[row]
            index += present[row]
            store_32(offsets + _WORD * (row + 1), total)
    return total if total <= STRINGS_BYTES_MAX else NO_STRINGS


@part
def _offsets(
    page: Numbers,
    total: int,
    dictionary: Lengths,
    strings: OpenedPages,
    optional: bool,
    offsets: int,
) -> int:
    """Write where the strings of a page end; return the bytes so far, NO_STRINGS where one is
    impossible.

    A string shares no more with the one before than that one has, the first shares nothing.
    """
    _, present, shared, own, _ = strings
    words = len(dictionary) - 1
    encoding = page[ENCODING]
    before = 0
    for row in range(page[FIRST], page[FIRST] + page[ROWS]):
        if not optional or present[row]:
            if encoding == DICTIONARY:
                word = shared[row]
                if not 0 <= word < words:
                    return NO_STRINGS
                total += dictionary[word + 1] - dictionary[word]
            else:
                if not 0 <= shared[row] <= before:
                    return NO_STRINGS
                before = int(shared[row]) + int(own[row])
                total += before
            if total > STRINGS_BYTES_MAX:
                return NO_STRINGS
        store_32(offsets + _WORD * (row + 1), total)
    return total


@part
def fill_strings(
    strings: OpenedPages,
    optional: bool,
    dictionary: DictionaryWords,
    offsets: int,
    size: int,
    to: int,
) -> None:
    """Copy the bytes of all strings. size: of all. to: has room for them, and SLACK more."""
    pages, present, shared, own, bytes_at = strings
    words = dictionary.offsets
    room_end = to + size + SLACK
    for index in range(len(pages)):
        page = pages[index]
        encoding, first, end = page[ENCODING], page[FIRST], page[END]
        source = bytes_at[index]
        if encoding == DELTA_LENGTHS:  # they lie together here and there
            copy_exactly(to + load_i32(offsets + _WORD * first), source, end - source)
            continue
        before = to
        for row in range(first, first + page[ROWS]):
            if optional and not present[row]:
                continue
            target = to + load_i32(offsets + _WORD * row)
            if encoding == DICTIONARY:
                start = words[shared[row]]
                length = words[shared[row] + 1] - start
                _copy_rounded(target, dictionary.at + start, length, dictionary.end)
                continue
            if encoding == PLAIN:
                source += _WORD
            elif shared[row] > 0:
                _copy_rounded(target, before, shared[row], room_end)
            _copy_rounded(target + shared[row], source, own[row], end)
            source += own[row]
            before = target


@part
def _copy_rounded(to: int, source: int, size: int, end: int) -> None:
    """Copy bytes, perhaps up to 31 more behind them; none is read from `end` on."""
    if source + ((size + 31) & -32) > end:
        for offset in range(size):
            store_u8(to + offset, load_u8(source + offset))
    elif size <= 16:
        copy_16(to, source)
    else:
        offset = 0
        while offset < size:
            copy_32(to + offset, source + offset)
            offset += 32
