"""Payloads become pages: compressed, with headers before them, one behind the other.

And what is recorded of a chunk's pages beside them: their CRC-32s and the bounds of their values.
"""

from __future__ import annotations

from typing import NamedTuple

from lakebed.kernels.checksums import crc32, joined_crc32
from lakebed.kernels.encoding_strings import copy_bytes, is_below
from lakebed.kernels.keys import Numbers
from lakebed.kernels.packing import put_varint, zigzag
from lakebed.kernels.toolchain.compiling import CHECKED, kernel, part
from lakebed.kernels.toolchain.memory import call_5, copy_32, store_64, store_u8

HEADER_ROOM = 64
"""Bytes that are reserved for a page's header, which has 50 bytes at most."""
DATA, DICTIONARY = 0, 2
"""Types of pages."""
PLAIN = 0
"""The encoding of a dictionary."""

UNORDERED, ASCENDING, DESCENDING = 0, 1, 2
"""As a ColumnIndex numbers them."""

_RLE = 3
_NEXT_NUMBER = 0x15
"""Head of a field that is the next of its struct."""
_DATA_HEADER, _DICTIONARY_HEADER = 0x1C, 0x3C
"""Heads of fields of a page's header, behind its CRC-32."""
_FALSE = 0x12


class Compressor(NamedTuple):
    """zstd's function, 0 for none, and what it works with."""

    function: int
    context: int


class ChunkPayloads(NamedTuple):
    """Payloads of a chunk's pages, which lie at `source` one behind the other, up to `ends`.

    rows: of every page but the last one, which has `last`.
    words: of a dictionary, which is the last payload and becomes the first page; -1: there is none.
    """

    encoding: int
    rows: int
    last: int
    words: int
    source: int
    ends: Numbers


class WrittenPages(NamedTuple):
    """The location of each page: offset, size, the size of its header, and the CRC-32 of both."""

    offsets: Numbers
    sizes: Numbers
    headers: Numbers
    checksums: Numbers


@part
def _put_number(to: int, value: int) -> int:
    """Write a number that is the next field of its struct."""
    store_u8(to, _NEXT_NUMBER)
    return put_varint(to + 1, zigzag(value))


@part
def _put_header(
    to: int, type_: int, raw: int, stored: int, checksum: int, values: int, encoding: int
) -> int:
    """Write a page's header. raw: bytes before compression."""
    to = _put_number(to, type_)
    to = _put_number(to, raw)
    to = _put_number(to, stored)
    to = _put_number(to, checksum - (1 << 32) if checksum >> 31 else checksum)
    store_u8(to, _DICTIONARY_HEADER if type_ == DICTIONARY else _DATA_HEADER)
    to = _put_number(to + 1, values)
    to = _put_number(to, encoding)
    if type_ == DICTIONARY:
        store_u8(to, _FALSE)  # its values are not sorted
        to += 1
    else:
        to = _put_number(to, _RLE)
        to = _put_number(to, _RLE)
    store_u8(to, 0)
    store_u8(to + 1, 0)
    return to + 2


@kernel
def write_pages(
    compressor: Compressor, payloads: ChunkPayloads, to: int, room: int, written: WrittenPages
) -> int:
    """Write the pages of a chunk at an address of so much room. Returns the bytes written; a
    negative number: zstd failed. written: is filled in."""
    compress, context = compressor
    encoding, rows, last, words, source, ends = payloads
    at = to
    pages = len(ends) if words < 0 else len(ends) - 1
    for index in range(len(ends)):
        page = index + pages - len(ends)
        type_, values, page_encoding = DATA, rows if page + 1 < pages else last, encoding
        if page < 0:
            type_, values, page_encoding, page = DICTIONARY, words, PLAIN, pages
        begin = source + (ends[page - 1] if page else 0)
        raw = source + ends[page] - begin
        if CHECKED:
            assert at - to + HEADER_ROOM + raw <= room
        stored, body = raw, begin
        if compress:
            body = at + HEADER_ROOM
            stored = call_5(compress, context, body, room - (body - to), begin, raw)
            if stored < 0:
                return stored
        checksum = crc32(0, body, stored)
        behind = _put_header(at, type_, raw, stored, checksum, values, page_encoding)
        moved = 0
        while moved < stored:  # downwards: what is written over was read
            copy_32(behind + moved, body + moved)
            moved += 32
        written.offsets[index] = at - to
        written.sizes[index] = behind + stored - at
        written.headers[index] = behind - at
        written.checksums[index] = joined_crc32(crc32(0, at, behind - at), checksum, stored)
        at = behind + stored
    return at - to


@part
def _goes_below(width: int, bounds: Numbers, a: int, b: int) -> bool:
    """Return whether one bound is less than another. width: of numbers; 0: strings."""
    if width:
        return bool(bounds[a] < bounds[b])
    return is_below(bounds[a], bounds[a + 1], bounds[b], bounds[b + 1])


@part
def _put_bounds(width: int, bounds: Numbers, first: int, step: int, to: int) -> int:
    """Write one bound of each page, its length before it."""
    for index in range(first, len(bounds), step):
        if width:
            store_u8(to, width)
            store_64(to + 1, bounds[index])
            to += 1 + width
        else:
            length = bounds[index + 1]
            to = put_varint(to, length)
            copy_bytes(to, bounds[index], length)
            to += length
    return to


@kernel
def write_bounds(width: int, bounds: Numbers, to: int, found: Numbers) -> None:
    """Write the least values of a chunk's pages, and behind them the greatest.

    width: of numbers, which `bounds` holds by two; 0: of strings it has addresses and lengths.
    found: gets where the least end and where the greatest end; the order in which both go; the
    pages that have the least and the greatest of all.
    """
    each = 1 if width else 2
    step = 2 * each
    ascends = descends = True
    least = greatest = 0
    for index in range(step, len(bounds), step):
        for bound in (index, index + each):
            ascends = ascends and not _goes_below(width, bounds, bound, bound - step)
            descends = descends and not _goes_below(width, bounds, bound - step, bound)
        if _goes_below(width, bounds, index, least):
            least = index
        if _goes_below(width, bounds, greatest + each, index + each):
            greatest = index
    behind = _put_bounds(width, bounds, 0, step, to)
    found[0] = behind - to
    found[1] = _put_bounds(width, bounds, each, step, behind) - to
    found[2] = ASCENDING if ascends else DESCENDING if descends else UNORDERED
    found[3] = least // step
    found[4] = greatest // step
