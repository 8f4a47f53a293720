"""Parquet's pages: where they lie, their headers, and what they hold, decompressed. Read strictly:
what is not expected is not understood.

Page checksums are passed over: the bytes have been verified by who gives them.
"""

from __future__ import annotations

import numpy as np

from lakebed.kernels.decoding import AT, END, FIRST, PLAIN, ROWS, SIZE
from lakebed.kernels.decoding import ENCODING as PAGE_ENCODING
from lakebed.kernels.keys import Numbers, Table
from lakebed.kernels.toolchain.compiling import kernel, part
from lakebed.kernels.toolchain.memory import call_5, load_u8
from lakebed.kernels.unpacking import BROKEN, as_signed, read_varint, signed

BODY, BODY_END, UNPACKED, VALUES, ENCODING = range(5)
"""Facts about a page: where its body begins and ends, how large it is when decompressed, its values
with nulls, the number of its encoding."""
FACTS = 5

DATA_PAGE, DICTIONARY_PAGE = 0, 2
NOT_UNDERSTOOD = -1

_NUMBER, _LONG, _LIST, _STRUCT = 5, 6, 9, 12
"""Types of Thrift's compact protocol: numbers of 32 and 64 bits, a list, a struct."""
_TRUE, _FALSE = 1, 2
_RLE = 3


@part
def _number(at: int, end: int, step: int) -> tuple[int, int]:
    """Return a number that is a field `step` further than the last one, and the address behind."""
    if at >= end or load_u8(at) != (step << 4 | _NUMBER):
        return 0, BROKEN
    raw, at = read_varint(at + 1, end)
    if at == BROKEN or raw >> np.uint64(32) != 0:
        return 0, BROKEN
    return as_signed(signed(raw)), at


@part
def _header(at: int, end: int, kind: int, facts: Numbers) -> int:
    """Read one header; return the address behind it, BROKEN where it is not understood."""
    found, at = _number(at, end, 1)
    if at == BROKEN or found != kind:
        return BROKEN
    unpacked, at = _number(at, end, 1)
    if at == BROKEN or unpacked < 0:
        return BROKEN
    packed, at = _number(at, end, 1)
    if at == BROKEN or packed < 0:
        return BROKEN
    step = 2 if kind == DATA_PAGE else 4
    _, behind = _number(at, end, 1)
    if behind != BROKEN:  # a checksum
        step, at = step - 1, behind
    if at >= end or load_u8(at) != (step << 4 | _STRUCT):
        return BROKEN
    values, at = _number(at + 1, end, 1)
    if at == BROKEN or values < 0:
        return BROKEN
    encoding, at = _number(at, end, 1)
    if kind == DATA_PAGE:
        for _ in range(2):  # how levels are encoded
            levels, at = _number(at, end, 1) if at != BROKEN else (0, BROKEN)
            if levels != _RLE:
                return BROKEN
    elif at != BROKEN and at < end and (load_u8(at) - (1 << 4)) in (_TRUE, _FALSE):
        at += 1  # whether the dictionary is sorted
    if at == BROKEN or at + 2 > end or load_u8(at) != 0 or load_u8(at + 1) != 0:
        return BROKEN
    facts[BODY] = at + 2
    facts[BODY_END] = at + 2 + packed
    facts[UNPACKED] = unpacked
    facts[VALUES] = values
    facts[ENCODING] = encoding
    return at + 2 + packed


@part
def _signed_field(at: int, end: int, field: int) -> tuple[int, int]:
    """Return a signed number whose field has this head, and the address behind."""
    if at >= end or load_u8(at) != field:
        return 0, BROKEN
    raw, at = read_varint(at + 1, end)
    return as_signed(signed(raw)), at


@part
def _list_head(at: int, end: int, step: int, kind: int) -> tuple[int, int]:
    """Return how many values a list has that is a field `step` further than the last one."""
    if at + 2 > end or load_u8(at) != (step << 4 | _LIST) or load_u8(at + 1) & 15 != kind:
        return 0, BROKEN
    count = load_u8(at + 1) >> 4
    if count < 15:
        return count, at + 2
    raw, at = read_varint(at + 2, end)
    return as_signed(raw), at


@part
def _read_offset_index(
    at: int, end: int, starts: Numbers, ends: Numbers, first_rows: Numbers
) -> int:
    """Read an OffsetIndex between two addresses; return how many pages it has, NOT_UNDERSTOOD
    where it is not as expected."""
    count, at = _list_head(at, end, 1, _STRUCT)
    if at == BROKEN or not 0 < count <= len(starts):
        return NOT_UNDERSTOOD
    for page in range(count):
        starts[page], at = _signed_field(at, end, 1 << 4 | _LONG)
        if at == BROKEN:
            return NOT_UNDERSTOOD
        size, at = _signed_field(at, end, 1 << 4 | _NUMBER)
        if at == BROKEN or size <= 0:
            return NOT_UNDERSTOOD
        ends[page] = starts[page] + size
        first_rows[page], at = _signed_field(at, end, 1 << 4 | _LONG)
        if at == BROKEN or at >= end or load_u8(at) != 0:
            return NOT_UNDERSTOOD
        at += 1
    sizes, behind = _list_head(at, end, 1, _LONG)
    if behind != BROKEN:  # how many bytes the strings of each page have
        at = behind
        if sizes != count:
            return NOT_UNDERSTOOD
        for _ in range(sizes):
            _, at = read_varint(at, end)
            if at == BROKEN:
                return NOT_UNDERSTOOD
    return count if at + 1 == end and load_u8(at) == 0 else NOT_UNDERSTOOD


@kernel
def read_page_locations(
    base: int, chunks: Table, rows: int, starts: Table, ends: Table, first_rows: Numbers
) -> int:
    """Read where the pages of a row group's chunks lie; return how many each has, NOT_UNDERSTOOD
    where that is not as expected, or pages of different chunks do not begin with the same rows.

    chunks: a row for each: where its OffsetIndex begins and ends, relative to `base`, and where its
    pages begin and end in the file. rows: of the row group. starts, ends: a row for each chunk, of
    as many pages as there may be. first_rows: one longer; after the last page follow all rows.
    """
    found = np.empty(len(first_rows), np.int64)
    count = 0
    for index in range(len(chunks)):
        chunk, some_starts, some_ends = chunks[index], starts[index], ends[index]
        pages = _read_offset_index(base + chunk[0], base + chunk[1], some_starts, some_ends, found)
        if pages < 0 or (index > 0 and pages != count):
            return NOT_UNDERSTOOD
        count = pages
        found[count] = rows
        behind = chunk[2]
        for page in range(count):
            if some_starts[page] < behind or found[page] >= found[page + 1]:
                return NOT_UNDERSTOOD
            behind = some_ends[page]
            if index > 0 and found[page] != first_rows[page]:
                return NOT_UNDERSTOOD
        if behind > chunk[3] or found[0] != 0:
            return NOT_UNDERSTOOD
        for page in range(count + 1):
            first_rows[page] = found[page]
    return count


@kernel
def words_of_page(at: int, end: int) -> int:
    """Return how many strings a dictionary page has between two addresses, or NOT_UNDERSTOOD."""
    fact = np.empty(FACTS, np.int64)
    if _header(at, end, DICTIONARY_PAGE, fact) != end or 4 * fact[VALUES] > fact[UNPACKED]:
        return NOT_UNDERSTOOD
    return int(fact[VALUES])


@part
def read_headers(
    kind: int,
    base: int,
    starts: Numbers,
    ends: Numbers,
    first_rows: Numbers,
    encodings: int,
    is_packed: bool,
    pages: Table,
) -> int:
    """Read the headers of pages; return how many bytes they have, decompressed, or NOT_UNDERSTOOD.

    kind: of all pages. starts, ends: relative to `base`; each page must end exactly there.
    first_rows: one more than pages. encodings: a bit for each that they may have. is_packed: they
    are compressed. pages: a row for each, as `decoding` takes them, not yet decompressed.
    """
    fact = np.empty(FACTS, np.int64)
    total = 0
    for index in range(len(starts)):
        end = base + ends[index]
        if _header(base + starts[index], end, kind, fact) != end:
            return NOT_UNDERSTOOD
        encoding = fact[ENCODING]
        if not 0 <= encoding < 64 or (encodings >> encoding) & 1 == 0:
            return NOT_UNDERSTOOD
        if fact[VALUES] != first_rows[index + 1] - first_rows[index]:
            return NOT_UNDERSTOOD
        if not is_packed and fact[UNPACKED] != fact[BODY_END] - fact[BODY]:
            return NOT_UNDERSTOOD
        page = pages[index]
        page[AT], page[END], page[SIZE] = fact[BODY], fact[BODY_END], fact[UNPACKED]
        page[FIRST], page[ROWS] = first_rows[index] - first_rows[0], fact[VALUES]
        page[PAGE_ENCODING] = PLAIN if kind == DICTIONARY_PAGE else encoding
        total += fact[UNPACKED]
    return total


@part
def decompress_pages(function: int, context: int, to: int, pages: Table) -> int:
    """Decompress pages, one behind the other; return the address behind the last, or
    NOT_UNDERSTOOD. function, context: as `zstd` returns them. to: has room for them."""
    for index in range(len(pages)):
        page = pages[index]
        size = page[SIZE]
        if call_5(function, context, to, size, page[AT], page[END] - page[AT]) != size:
            return NOT_UNDERSTOOD
        page[AT], page[END] = to, to + size
        to += size
    return to
