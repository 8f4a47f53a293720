"""Page indexes: where the pages of a column chunk are, which rows they hold, and their bounds."""

from __future__ import annotations

import itertools

import msgspec

from lakebed.parquet_bytes.footer import Chunk, Footer, RowGroup
from lakebed.parquet_bytes.thrift import (
    BINARY,
    BOOL,
    I32,
    I64,
    LIST,
    STRUCT,
    MalformedError,
    Reader,
    Struct,
)
from lakebed.parquet_bytes.varints import Numbers

UNORDERED, ASCENDING, DESCENDING = range(3)


class Pages(msgspec.Struct, frozen=True):
    """An OffsetIndex: of each data page its offset in the file, its size with the header, and the
    group's row that it begins with. All ascend, and the first row is 0.

    byte_counts: of strings, if known.
    """

    offsets: tuple[int, ...]
    sizes: tuple[int, ...]
    first_rows: tuple[int, ...]
    byte_counts: tuple[int, ...] | None = None


class EncodedPages(msgspec.Struct, frozen=True, eq=False, array_like=True):
    """An OffsetIndex apart from its file: `Pages` of numbers that are written all at once.

    offsets: counted from the chunk's first byte.
    """

    offsets: Numbers
    sizes: Numbers
    first_rows: Numbers
    byte_counts: Numbers | None


class PageBounds(msgspec.Struct, frozen=True):
    """A ColumnIndex: of each data page the least and greatest value, which may be shortened, b""
    where all are null.

    nulls: how many, if known.
    order: UNORDERED, ASCENDING or DESCENDING.
    """

    mins: tuple[bytes, ...]
    maxs: tuple[bytes, ...]
    all_null: tuple[bool, ...]
    nulls: tuple[int, ...] | None
    order: int


def pages_of(footer: Footer, row_group: RowGroup, chunk: Chunk) -> Pages | None:
    """Return where a column chunk's pages are; None: its writer did not say.

    Raises:
        MalformedError: they are not in the chunk, or not in order.
    """
    fields = _fields(footer, chunk.offset_index)
    return None if fields is None else _located(fields, row_group, chunk)


def _located(fields: Struct, row_group: RowGroup, chunk: Chunk) -> Pages:
    counts = fields.listed(2, I64)
    found: list[Struct] = fields.listed(1, STRUCT) or []
    pages = Pages(
        offsets=tuple(page.need(1, I64) for page in found),
        sizes=tuple(page.need(2, I32) for page in found),
        first_rows=tuple(page.need(3, I64) for page in found),
        byte_counts=None if counts is None else tuple(counts),
    )
    end = chunk.start
    for offset, size in zip(pages.offsets, pages.sizes, strict=True):
        if offset < end or size <= 0:
            raise MalformedError("pages lie in each other or before their chunk")
        end = offset + size
    if end > chunk.end:
        raise MalformedError("a page reaches behind its chunk")
    rows = pages.first_rows
    if (not rows and row_group.rows) or (
        rows and (rows[0] != 0 or rows[-1] >= max(1, row_group.rows))
    ):
        raise MalformedError("pages do not hold their row group's rows")
    if any(low >= high for low, high in itertools.pairwise(rows)):
        raise MalformedError("first rows of pages do not ascend")
    return pages


def page_count(footer: Footer, chunk: Chunk) -> int | None:
    """Return how many data pages a column chunk has, without looking at them; None: its writer did
    not say.

    Raises:
        MalformedError: the bytes are no page index.
    """
    location = chunk.offset_index
    if location is None:
        return None
    reader = Reader(footer.tail, location[0] - footer.tail_offset)
    if reader.field(0) != (1, LIST):
        raise MalformedError("a page index that does not begin with its pages")
    return reader.list_head()[1]


def bounds_of(footer: Footer, chunk: Chunk, pages: Pages) -> PageBounds | None:
    """Return bounds of a column chunk's pages; None: there are none.

    Raises:
        MalformedError: they are not of these pages.
    """
    fields = _fields(footer, chunk.column_index)
    if fields is None:
        return None
    nulls = fields.listed(5, I64)
    bounds = PageBounds(
        mins=tuple(fields.listed(2, BINARY) or ()),
        maxs=tuple(fields.listed(3, BINARY) or ()),
        all_null=tuple(fields.listed(1, BOOL) or ()),
        nulls=None if nulls is None else tuple(nulls),
        order=fields.need(4, I32),
    )
    lists = [bounds.mins, bounds.maxs, bounds.all_null, bounds.nulls]
    if any(part is not None and len(part) != len(pages.offsets) for part in lists):
        raise MalformedError("a column has bounds of other pages")
    if bounds.order not in (UNORDERED, ASCENDING, DESCENDING):
        raise MalformedError("bounds in an unknown order")
    return bounds


def _fields(footer: Footer, location: tuple[int, int] | None) -> Struct | None:
    if location is None:
        return None
    start, end = location[0] - footer.tail_offset, location[1] - footer.tail_offset
    reader = Reader(footer.tail[start:end])
    fields = reader.struct()
    if reader.at != end - start:
        raise MalformedError("a page index has bytes behind its end")
    return fields
