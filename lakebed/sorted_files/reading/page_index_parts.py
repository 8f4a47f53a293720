"""Parses the page index of a file when it is needed, one row group and column at a time.

Tails stay bytes; what was parsed of them is kept in one cache for all files, bounded by bytes.
"""

from __future__ import annotations

import struct
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any, NamedTuple, TypeVar

import msgspec

from lakebed.model.files import StoredFile
from lakebed.model.keys import KEY_BYTES_MAX, TERMINATOR, above_prefix, encode_field
from lakebed.model.ranges import KeyRange
from lakebed.model.schema import Field
from lakebed.parquet_bytes.footer import Chunk, Footer, RowGroup
from lakebed.parquet_bytes.page_index import PageBounds, Pages, bounds_of, page_count, pages_of
from lakebed.parquet_bytes.thrift import MalformedError, encode_struct
from lakebed.sorted_files.reading.byte_cache import ByteCache
from lakebed.sorted_files.reading.row_group_bounds import CUT_BYTES_MIN
from lakebed.sorted_files.reading.tails import Tail

PartT = TypeVar("PartT")
IndexCache = ByteCache[tuple[StoredFile, object], Any]

_ABOVE_ALL = b"\xff" * (KEY_BYTES_MAX + 1)
_WIDTHS = {"int32": 4, "date32": 4, "int64": 8, "timestamp[us, UTC]": 8}
_BYTES_PER_ROW_GROUP = 64
_BYTES_PER_CHUNK = 600
_BYTES_PER_PAGE = 150
"""Memory of parsed parts, about, beside the bytes of keys."""


class NotByPagesError(Exception):
    """These rows cannot be read page by page: read whole row groups. Never leaves this room."""


class Page(NamedTuple):
    """The location of a page, header included, and its CRC-32."""

    offset: int
    size: int
    checksum: int


class ColumnIndex(msgspec.Struct, frozen=True):
    """A column's pages in one row group: which row each begins with, and its dictionary.

    element: the column as the file's schema stores it.
    rows: of the group.
    """

    element: bytes
    chunk: Chunk
    dictionary: Page | None
    pages: tuple[Page, ...]
    first_rows: tuple[int, ...]
    rows: int


class KeyPages(msgspec.Struct, frozen=True):
    """The pages of a row group by encoded row keys, ascending: page n holds rows from `lows[n]` to
    below `highs[n]`, and begins with the row `first_rows[n]`.

    rows: of the group.
    """

    lows: tuple[bytes, ...]
    highs: tuple[bytes, ...]
    first_rows: tuple[int, ...]
    rows: int

    def spans_in(self, ranges: Sequence[KeyRange]) -> list[tuple[int, int]]:
        """Return from which page to below which there may be keys in ascending ranges; ascending,
        and none beside another."""
        found: list[tuple[int, int]] = []
        for r in ranges:
            first = bisect_right(self.highs, r.min)
            end = len(self.lows) if r.max is None else bisect_left(self.lows, r.max)
            if first >= end:
                continue
            if found and first <= found[-1][1]:
                found[-1] = (found[-1][0], max(end, found[-1][1]))
            else:
                found.append((first, end))
        return found

    def end_row(self, page: int) -> int:
        """Return the row behind the last one of the page before `page`."""
        return self.first_rows[page] if page < len(self.first_rows) else self.rows


class FileIndex:
    """The index of one file. tail: verified, so a part that makes no sense was written so.

    Every method raises NotByPagesError where the index does not say.
    """

    def __init__(self, file: StoredFile, tail: Tail, cache: IndexCache) -> None:
        self._file = file
        self._tail = tail
        self._cache = cache

    @property
    def footer(self) -> Footer:
        """Return the footer, without its row groups."""

        def parse() -> tuple[Footer, int]:
            footer = self._tail.footer
            return footer, len(self._tail.raw) + _BYTES_PER_ROW_GROUP * footer.row_groups_count

        return self._part("footer", parse)

    @property
    def flat_columns(self) -> dict[str, int]:
        """Return the indices of flat columns among Parquet's, by their names."""

        def parse() -> tuple[dict[str, int], int]:
            numbered = enumerate(self.footer.columns)
            flat = {
                column.path[0]: index
                for index, column in numbered
                if len(column.path) == 1
                and not column.repetition_max
                and column.definition_max <= 1
            }
            return flat, _BYTES_PER_PAGE * len(flat)

        return self._part("flat columns", parse)

    def row_group(self, row_group: int) -> RowGroup:
        """Return a row group's chunks."""

        def parse() -> tuple[RowGroup, int]:
            found = self.footer.row_group(row_group)
            return found, _BYTES_PER_CHUNK * len(found.chunks)

        return self._part(row_group, parse)

    def pages(self, row_group: int, column: int) -> Pages:
        """Return where the pages of a column are."""

        def parse() -> tuple[Pages, int]:
            inside = self.row_group(row_group)
            found = pages_of(self.footer, inside, inside.chunks[column])
            if found is None or not found.offsets:
                raise NotByPagesError("no offset index")
            return found, _BYTES_PER_PAGE * len(found.offsets)

        return self._part((row_group, column), parse)

    def columns(self, row_group: int, stored_columns: tuple[int, ...]) -> tuple[ColumnIndex, ...]:
        """Return the pages of some columns; where they begin with the same rows, the first rows are
        one and the same tuple."""

        def parse() -> tuple[tuple[ColumnIndex, ...], int]:
            found: list[ColumnIndex] = []
            seen: dict[tuple[int, ...], tuple[int, ...]] = {}
            for column in stored_columns:
                rows = self.pages(row_group, column).first_rows
                found.append(self._column(row_group, column, seen.setdefault(rows, rows)))
            size = sum(_BYTES_PER_CHUNK + _BYTES_PER_PAGE * len(c.pages) for c in found)
            return tuple(found), size

        return self._part((row_group, stored_columns), parse)

    def _column(self, row_group: int, column: int, first_rows: tuple[int, ...]) -> ColumnIndex:
        inside = self.row_group(row_group)
        chunk, pages = inside.chunks[column], self.pages(row_group, column)
        checksums = self._checksums(row_group)[column]
        dictionary = None
        if chunk.dictionary_page_offset is not None:
            at = chunk.dictionary_page_offset
            dictionary = Page(at, pages.offsets[0] - at, checksums[0])
            checksums = checksums[1:]
        return ColumnIndex(
            element=encode_struct(self.footer.elements[column]),
            chunk=chunk,
            dictionary=dictionary,
            pages=tuple(map(Page, pages.offsets, pages.sizes, checksums)),
            first_rows=first_rows,
            rows=inside.rows,
        )

    def _checksums(self, row_group: int) -> tuple[tuple[int, ...], ...]:
        """Return the CRC-32s of each column's pages, of its dictionary first if it has one."""

        def parse() -> tuple[tuple[tuple[int, ...], ...], int]:
            noted = self._tail.notes.pages[row_group]
            counts = [self._page_count(chunk) for chunk in self.row_group(row_group).chunks]
            if 4 * sum(counts) != len(noted):
                raise NotByPagesError("no checksums of pages")
            all_ = iter(struct.unpack(f">{sum(counts)}I", noted))
            found = tuple(tuple(islice(all_, count)) for count in counts)
            return found, _BYTES_PER_PAGE * sum(counts) // 3

        return self._part((row_group, "checksums"), parse)

    def _page_count(self, chunk: Chunk) -> int:
        count = page_count(self.footer, chunk)
        if count is None:
            raise NotByPagesError("no offset index")
        return count + (chunk.dictionary_page_offset is not None)

    def bounds(self, row_group: int, column: int) -> PageBounds | None:
        """Return the bounds of a column's pages; None: its writer kept none."""

        def parse() -> tuple[PageBounds | None, int]:
            chunk, pages = self.row_group(row_group).chunks[column], self.pages(row_group, column)
            found = bounds_of(self.footer, chunk, pages)
            values = () if found is None else (*found.mins, *found.maxs)
            return found, sum(map(len, values)) + _BYTES_PER_PAGE * len(pages.offsets)

        return self._part((row_group, column, "bounds"), parse)

    def key_pages(
        self, row_group: int, fields: Sequence[Field], stored_columns: Sequence[int]
    ) -> KeyPages:
        """Return a row group's pages by their row keys. stored_columns: of the fields."""

        def parse() -> tuple[KeyPages, int]:
            inside = self.row_group(row_group)
            pages = self.pages(row_group, stored_columns[0])
            columns = []
            for column in stored_columns:
                own = self.pages(row_group, column)
                bounds = bounds_of(self.footer, inside.chunks[column], own)
                if own.first_rows != pages.first_rows:
                    break  # further fields only help where their pages are the same rows
                if bounds is None or any(bounds.all_null):
                    break
                columns.append(bounds)
            if not columns:
                raise NotByPagesError("no column index of keys")
            found = _key_pages(pages, inside.rows, fields, columns)
            size = sum(map(len, (*found.lows, *found.highs)))
            return found, size + _BYTES_PER_PAGE * len(found.lows)

        return self._part((row_group, "keys"), parse)

    def _part(self, name: object, parse: Callable[[], tuple[PartT, int]]) -> PartT:
        key = self._file, name
        found: PartT | None = self._cache.get(key)
        if found is None:
            try:
                found, size = parse()
            except MalformedError as error:
                raise NotByPagesError(str(error)) from error
            self._cache.put(key, found, size)
        return found


def _key_pages(
    pages: Pages, rows: int, fields: Sequence[Field], columns: Sequence[PageBounds]
) -> KeyPages:
    spans = [_span(fields, columns, page) for page in range(len(pages.offsets))]
    lows, highs = [low for low, _ in spans], [high for _, high in spans]
    # Rows ascend, so what holds for a page holds for those before it, or behind it, too.
    for page in range(1, len(spans)):
        lows[page] = max(lows[page], lows[page - 1])
    for page in range(len(spans) - 2, -1, -1):
        highs[page] = min(highs[page], highs[page + 1])
    return KeyPages(tuple(lows), tuple(highs), pages.first_rows, rows)


def _span(fields: Sequence[Field], columns: Sequence[PageBounds], page: int) -> tuple[bytes, bytes]:
    """Return encoded keys, of which no row's lies below the first, nor at or above the second.

    A least value that was cut is still below all. A greatest value that was cut may have been
    rounded up, or not: so whatever begins with it may be in the page.
    """
    prefix = b""
    low, high = b"", _ABOVE_ALL
    for field, bounds in zip(fields, columns, strict=False):
        least, most = bounds.mins[page], bounds.maxs[page]
        encoded = _encoded(field, most)
        is_text = encoded.endswith(TERMINATOR) and str(field.type) in ("string", "binary")
        low = prefix + _encoded(field, least)
        stem = prefix + (encoded.removesuffix(TERMINATOR) if is_text else encoded)
        high = above_prefix(stem) or _ABOVE_ALL
        if least != most or (is_text and len(most) >= CUT_BYTES_MIN):
            break
        prefix = low
    return low, high


def _encoded(field: Field, stored: bytes) -> bytes:
    """Return the encoding of a key value as Parquet's bounds store it."""
    name = str(field.type)
    if name in ("string", "binary"):
        return encode_field(field.type, stored)
    if len(stored) != _WIDTHS[name]:
        raise NotByPagesError("a bound of another width")
    return encode_field(field.type, int.from_bytes(stored, "little", signed=True))
