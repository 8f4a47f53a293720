"""Pages of the same rows of several columns into Arrow's buffers: one call opens and measures them,
and decodes what has a fixed width, one more fills in strings.

A column is a row of `columns`: what it is, where its pages and its dictionary lie, and where its
rows go; the call adds how many bytes its strings have, and its nulls.
"""

from __future__ import annotations

from typing import NamedTuple

from lakebed.kernels.decoding import (
    DECODED,
    decode_bits,
    decode_decimals,
    decode_numbers,
    pack_bits,
)
from lakebed.kernels.decoding_strings import (
    NO_STRINGS,
    DictionaryWords,
    Lengths,
    OpenedPages,
    fill_strings,
    measure_strings,
)
from lakebed.kernels.keys import Numbers, Table
from lakebed.kernels.page_headers import NOT_UNDERSTOOD, decompress_pages, read_headers
from lakebed.kernels.toolchain.compiling import kernel, part
from lakebed.kernels.unpacking import Bytes

(
    KIND,
    SIZE,
    OPTIONAL,
    ENCODINGS,
    PACKED,
    BASE,
    WORDS,
    WORDS_END,
    WORDS_AT,
    WORDS_BYTES_END,
    VALUES_AT,
    BITS_AT,
    BYTES_AT,
    BYTES,
    NULLS,
) = range(15)
"""Facts about a column: kind; size of a fixed-width value; whether it may be null; a bit for each
encoding; whether its pages are compressed; what added to an offset in the file makes an address;
its part of `words`, which are offsets of dictionaries, and the address of its words' bytes, and
behind them; where its values or offsets, validity and strings go; how many bytes its strings have;
how many nulls it has."""
COLUMN_FACTS = 15

BITS, NUMBERS, DECIMALS, STRINGS = range(4)
OPENED = 0


class PageRange(NamedTuple):
    """Pages of some columns, of the same rows of each: those from `page` to `last`.

    kind: of all pages.
    starts, ends: a row for each column: where its pages are in the file.
    first_rows: the rows that they begin with.
    """

    kind: int
    starts: Table
    ends: Table
    first_rows: Numbers
    page: int
    last: int


class Decompressor(NamedTuple):
    """The function that decompresses pages, and the memory that it needs.

    function, context: as `zstd` returns them.
    to: the address of `room` bytes, where strings lie until they are filled in.
    """

    function: int
    context: int
    to: int
    room: int


@kernel
def open_columns(
    columns: Table,
    wanted: PageRange,
    words: Lengths,
    decompressor: Decompressor,
    opened: OpenedPages,
) -> int:
    """Decode pages of numbers and the offsets of strings; return OPENED, NOT_UNDERSTOOD, or how
    much room they need where that is more than there is.

    words: offsets of all dictionaries. opened: for `fill_columns`: has a row for each page of each
    column, and room for as many rows as all columns have.
    """
    function, context, to, room = decompressor
    first_rows, page, last = wanted.first_rows, wanted.page, wanted.last
    count, rows = last - page, first_rows[last] - first_rows[page]
    needed = _read_columns(columns, wanted, opened.pages)
    if needed == NOT_UNDERSTOOD or needed > room:
        return needed
    for index in range(len(columns)):
        column, some = columns[index], _of_column(opened, index, count, rows)
        if column[PACKED] != 0:
            end = decompress_pages(function, context, to, some.pages)
            if end == NOT_UNDERSTOOD:
                return NOT_UNDERSTOOD
            if column[KIND] == STRINGS:
                to = end
        if column[KIND] == STRINGS:
            dictionary = _dictionary_of(column, words)
            column[BYTES] = measure_strings(
                some, column[OPTIONAL] != 0, dictionary, column[VALUES_AT]
            )
            if column[BYTES] == NO_STRINGS:
                return NOT_UNDERSTOOD
        elif _decode_fixed(column, some.pages, some.present) != DECODED:
            return NOT_UNDERSTOOD
        column[NULLS] = 0
        if column[OPTIONAL] != 0:
            column[NULLS] = rows - pack_bits(some.present, column[BITS_AT])
    return OPENED


@part
def _of_column(opened: OpenedPages, index: int, count: int, rows: int) -> OpenedPages:
    """Return the pages of one column, of so many rows."""
    first, behind = index * rows, (index + 1) * rows
    return OpenedPages(
        opened.pages[index * count : (index + 1) * count],
        opened.present[first:behind],
        opened.shared[first:behind],
        opened.own[first:behind],
        opened.bytes_at[index * count : (index + 1) * count],
    )


@part
def _dictionary_of(column: Numbers, words: Lengths) -> DictionaryWords:
    offsets = words[column[WORDS] : column[WORDS_END]]
    return DictionaryWords(offsets, column[WORDS_AT], column[WORDS_BYTES_END])


@part
def _read_columns(columns: Table, wanted: PageRange, pages: Table) -> int:
    """Read all headers; return how much room pages need, or NOT_UNDERSTOOD.

    Numbers are decoded at once: they need room only one column after the other.
    """
    page, last = wanted.page, wanted.last
    count = last - page
    needed, most = 0, 0
    for index in range(len(columns)):
        column = columns[index]
        size = read_headers(
            wanted.kind,
            column[BASE],
            wanted.starts[index, page:last],
            wanted.ends[index, page:last],
            wanted.first_rows[page : last + 1],
            column[ENCODINGS],
            column[PACKED] != 0,
            pages[index * count : (index + 1) * count],
        )
        if size == NOT_UNDERSTOOD:
            return NOT_UNDERSTOOD
        if column[PACKED] != 0 and column[KIND] == STRINGS:
            needed += size
        elif column[PACKED] != 0:
            most = max(most, size)
    return needed + most


@part
def _decode_fixed(column: Numbers, pages: Table, present: Bytes) -> int:
    """Decode values of a fixed width."""
    optional, to = column[OPTIONAL] != 0, column[VALUES_AT]
    if column[KIND] == BITS:
        return decode_bits(pages, optional, present, to)
    if column[KIND] == DECIMALS:
        return decode_decimals(pages, optional, column[SIZE], present, to)
    return decode_numbers(pages, optional, column[SIZE], present, to)


@kernel
def fill_columns(columns: Table, words: Lengths, opened: OpenedPages, rows: int) -> None:
    """Copy the bytes of all strings of columns that were opened; the rest as they were then."""
    count = len(opened.pages) // len(columns)
    for index in range(len(columns)):
        column = columns[index]
        if column[KIND] == STRINGS:
            fill_strings(
                _of_column(opened, index, count, rows),
                column[OPTIONAL] != 0,
                _dictionary_of(column, words),
                column[VALUES_AT],
                column[BYTES],
                column[BYTES_AT],
            )
