"""Pages of the same rows of several columns into Arrow's buffers: one call opens and measures them,
and decodes what has a fixed width, one more fills in strings.

A column is a row of `columns`: what it is, where its pages and its dictionary lie, and where its
rows go; the call adds how many bytes its strings have, and its nulls. `starts` and `ends` have a
row for each column: where its pages are in the file, `first_rows` the rows that they begin with.
The pages at hand are those from `page` to `last`.
"""

from __future__ import annotations

from lakebed.kernels.decoding import (
    DECODED,
    decode_bits,
    decode_decimals,
    decode_numbers,
    pack_bits,
)
from lakebed.kernels.decoding_strings import (
    NO_STRINGS,
    Lengths,
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
"""Of a column: kind; size of a fixed-width value; whether it may be null; a bit for each encoding;
whether its pages are compressed; what added to a place in the file makes an address; its part of
`words`, which are offsets of dictionaries, and the address of its words' bytes, and behind them;
where its values or offsets, validity and strings go; how many bytes its strings have; nulls."""
COLUMN_FACTS = 15

BITS, NUMBERS, DECIMALS, STRINGS = range(4)
OPENED = 0


@kernel
def open_columns(
    page_kind: int,
    columns: Table,
    starts: Table,
    ends: Table,
    first_rows: Numbers,
    page: int,
    last: int,
    decompress: int,
    context: int,
    to: int,
    room: int,
    words: Lengths,
    pages: Table,
    present: Bytes,
    shared: Lengths,
    own: Lengths,
    bytes_at: Numbers,
) -> int:
    """Decode pages of numbers and the offsets of strings; return OPENED, NOT_UNDERSTOOD, or how
    much room they need where that is more than there is.

    decompress, context: as `zstd` tells them. to: the address of `room` bytes, where strings lie
    until they are filled in. pages: a row for each page of each column. present, shared, own: of as
    many rows as all columns have, for `fill_columns`; bytes_at: of as many as there are pages.
    """
    count, rows = last - page, first_rows[last] - first_rows[page]
    needed = _read_columns(page_kind, columns, starts, ends, first_rows, page, last, pages)
    if needed == NOT_UNDERSTOOD or needed > room:
        return needed
    for place in range(len(columns)):
        column, some = columns[place], pages[place * count : (place + 1) * count]
        first, behind = place * rows, (place + 1) * rows
        if column[PACKED] != 0:
            end = decompress_pages(decompress, context, to, some)
            if end == NOT_UNDERSTOOD:
                return NOT_UNDERSTOOD
            if column[KIND] == STRINGS:
                to = end
        if column[KIND] == STRINGS:
            column[BYTES] = measure_strings(
                some,
                column[OPTIONAL] != 0,
                words[column[WORDS] : column[WORDS_END]],
                present[first:behind],
                shared[first:behind],
                own[first:behind],
                bytes_at[place * count : (place + 1) * count],
                column[VALUES_AT],
            )
            if column[BYTES] == NO_STRINGS:
                return NOT_UNDERSTOOD
        elif _decode_fixed(column, some, present[first:behind]) != DECODED:
            return NOT_UNDERSTOOD
        column[NULLS] = 0
        if column[OPTIONAL] != 0:
            column[NULLS] = rows - pack_bits(present[first:behind], column[BITS_AT])
    return OPENED


@part
def _read_columns(
    page_kind: int,
    columns: Table,
    starts: Table,
    ends: Table,
    first_rows: Numbers,
    page: int,
    last: int,
    pages: Table,
) -> int:
    """Read all headers; return how much room pages need, or NOT_UNDERSTOOD.

    Numbers are decoded at once: they need room only one column after the other.
    """
    count = last - page
    needed, most = 0, 0
    for place in range(len(columns)):
        column = columns[place]
        size = read_headers(
            page_kind,
            column[BASE],
            starts[place, page:last],
            ends[place, page:last],
            first_rows[page : last + 1],
            column[ENCODINGS],
            column[PACKED] != 0,
            pages[place * count : (place + 1) * count],
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
def fill_columns(
    columns: Table,
    words: Lengths,
    pages: Table,
    rows: int,
    present: Bytes,
    shared: Lengths,
    own: Lengths,
    bytes_at: Numbers,
) -> None:
    """Copy the bytes of all strings of columns that were opened; the rest as they were then."""
    count = len(pages) // len(columns)
    for place in range(len(columns)):
        column = columns[place]
        if column[KIND] == STRINGS:
            first, behind = place * rows, (place + 1) * rows
            fill_strings(
                pages[place * count : (place + 1) * count],
                column[OPTIONAL] != 0,
                words[column[WORDS] : column[WORDS_END]],
                column[WORDS_AT],
                column[WORDS_BYTES_END],
                present[first:behind],
                shared[first:behind],
                own[first:behind],
                bytes_at[place * count : (place + 1) * count],
                column[VALUES_AT],
                column[BYTES],
                column[BYTES_AT],
            )
