"""Parquet's pages: where they lie, their headers, and what they hold, decompressed. Read strictly:
what is not expected is not understood.

Page checksums are passed over: the bytes have been verified by who gives them.
"""

from __future__ import annotations

import numpy as np

from lakebed.kernels.compiling import kernel, part
from lakebed.kernels.decoding import AT, END, FIRST, ROWS
from lakebed.kernels.decoding import ENCODING as PAGE_ENCODING
from lakebed.kernels.keys import Numbers, Table
from lakebed.kernels.memory import call_5, load_u8
from lakebed.kernels.unpacking import BROKEN, as_signed, read_varint, signed

BODY, BODY_END, UNPACKED, VALUES, ENCODING = range(5)
"""What is told of each page: where its body begins and ends, how large it is when decompressed, its
values with nulls, the number of its encoding."""
FACTS = 5

DATA_PAGE, DICTIONARY_PAGE = 0, 2
OPENED = 0
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
def _place(at: int, end: int, field: int) -> tuple[int, int]:
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


@kernel
def read_places(at: int, end: int, places: Table) -> int:
    """Read an OffsetIndex; return how many pages it tells, NOT_UNDERSTOOD if it is not as expected.

    at, end: its addresses. places: a row for each page: its offset, its size, its first row.
    """
    count, at = _list_head(at, end, 1, _STRUCT)
    if at == BROKEN or not 0 <= count <= len(places):
        return NOT_UNDERSTOOD
    for page in range(count):
        for field in range(3):
            head = 1 << 4 | (_NUMBER if field == 1 else _LONG)
            number, at = _place(at, end, head)
            if at == BROKEN:
                return NOT_UNDERSTOOD
            places[page, field] = number
        if at >= end or load_u8(at) != 0:
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
def open_pages(
    kind: int,
    base: int,
    starts: Numbers,
    ends: Numbers,
    rows: Numbers,
    encodings: int,
    decompress: int,
    context: int,
    to: int,
    room: int,
    pages: Table,
) -> int:
    """Read the headers of pages and decompress them, one behind the other; return OPENED,
    NOT_UNDERSTOOD, or how much room they need where that is more than there is.

    kind: of all pages. starts, ends: relative to `base`; each page must end exactly there. rows:
    that each must have, in a dictionary any. encodings: a bit for each that they may have.
    decompress, context: as `zstd` tells them, 0 where pages are stored as they are. to: the address
    of `room` bytes. pages: a row for each, as `decoding` takes them.
    """
    facts = np.empty((len(starts), FACTS), np.int64)
    needed, first = 0, 0
    for place in range(len(starts)):
        fact, end = facts[place], base + ends[place]
        if _header(base + starts[place], end, kind, fact) != end:
            return NOT_UNDERSTOOD
        encoding = fact[ENCODING]
        if not 0 <= encoding < 64 or (encodings >> encoding) & 1 == 0:
            return NOT_UNDERSTOOD
        if kind == DATA_PAGE and fact[VALUES] != rows[place]:
            return NOT_UNDERSTOOD
        if decompress == 0 and fact[UNPACKED] != fact[BODY_END] - fact[BODY]:
            return NOT_UNDERSTOOD
        page = pages[place]
        page[AT], page[END], page[FIRST] = fact[BODY], fact[BODY_END], first
        page[ROWS], page[PAGE_ENCODING] = fact[VALUES], encoding
        needed += fact[UNPACKED]
        first += fact[VALUES]
    if decompress == 0:
        return OPENED
    if needed > room:
        return needed
    for place in range(len(starts)):
        page, size = pages[place], facts[place, UNPACKED]
        if call_5(decompress, context, to, size, page[AT], page[END] - page[AT]) != size:
            return NOT_UNDERSTOOD
        page[AT], page[END] = to, to + size
        to += size
    return OPENED
