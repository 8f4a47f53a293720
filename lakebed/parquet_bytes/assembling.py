"""A Parquet file put together from row groups that are encoded already.

    assembly = Assembly(template, out.write, sorted_by=2)
    for row_group in encoded:
        assembly.add(row_group)
    assembly.end({"note": "text"})          # page indexes and footer: the file's tail

The template is a file without rows that pyarrow wrote: its schema, its notes and its maker's name
are the new file's. Everything else is as pyarrow writes it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec
import numpy as np

from lakebed.parquet_bytes.encoded import EncodedRowGroup, listed, shifted
from lakebed.parquet_bytes.footer import MAGIC, Footer
from lakebed.parquet_bytes.page_index import EncodedPages
from lakebed.parquet_bytes.thrift import (
    BINARY,
    BOOL,
    I32,
    I64,
    STRUCT,
    Struct,
    encode_struct,
    list_head,
)
from lakebed.parquet_bytes.varints import Numbers, packed

Write = Callable[[Sequence[bytes | memoryview]], object]


_OFFSET_INDEX, _COLUMN_INDEX = 4, 6
"""Fields of a column chunk: where they are; how long they are comes next."""


_PAGE = (0x16, 0, 0x15, 0, 0x16, 0, 0)
"""A PageLocation: before each number the head of its field, and the struct's end."""


class _Placed(msgspec.Struct, frozen=True, eq=False):
    """A chunk that has been written from `start` on, and what of it goes into the tail."""

    column: Struct
    start: int
    pages: EncodedPages | None
    bounds: bytes | None


class Assembly:
    """A file being written. write: takes some bytes and puts them behind what it took before.

    sorted_by: that many columns, from the first on, are what rows are sorted by.
    """

    def __init__(self, template: Footer, write: Write, *, sorted_by: int) -> None:
        self._template = template
        self._write = write
        self._sorting = [
            Struct({1: (I32, index), 2: (BOOL, False), 3: (BOOL, False)})
            for index in range(sorted_by)
        ]
        self._at = 0
        self._rows = 0
        self._row_groups: list[Struct] = []
        self._placed: list[_Placed] = []
        self._put([MAGIC])

    def add(self, row_group: EncodedRowGroup) -> None:
        """Write a row group behind the others."""
        if len(row_group.chunks) != len(self._template.columns):
            raise AssertionError("a chunk for each column")
        columns = []
        start = self._at
        for chunk in row_group.chunks:
            column = Struct({2: (I64, 0), 3: (STRUCT, shifted(chunk.metadata, start))})
            columns.append(column)
            self._placed.append(_Placed(column, start, chunk.pages, chunk.bounds))
            start += chunk.size
        size = sum(chunk.bytes_count for chunk in row_group.chunks)
        fields = Struct({1: listed(STRUCT, columns), 2: (I64, size), 3: (I64, row_group.rows)})
        if self._sorting:
            fields[4] = listed(STRUCT, self._sorting)
        fields[5], fields[6] = (I64, self._at), (I64, start - self._at)
        self._row_groups.append(fields)
        self._rows += row_group.rows
        self._put([chunk.raw for chunk in row_group.chunks])
        if self._at != start:
            raise AssertionError("a chunk has as many bytes as it says")

    def end(self, notes: Mapping[str, str]) -> None:
        """Write the tail. notes: texts for the footer, beside the template's."""
        tail: list[bytes] = []
        at = self._at
        column_indexes = [placed.bounds for placed in self._placed]
        offset_indexes = encode_pages([(placed.pages, placed.start) for placed in self._placed])
        for field, indexes in ((_COLUMN_INDEX, column_indexes), (_OFFSET_INDEX, offset_indexes)):
            for placed, raw in zip(self._placed, indexes, strict=True):
                if raw is not None:
                    placed.column[field] = (I64, at)
                    placed.column[field + 1] = (I32, len(raw))
                    tail.append(raw)
                    at += len(raw)
        for placed in self._placed:
            ordered = sorted(placed.column.items())
            placed.column.clear()
            placed.column.update(ordered)
        footer = encode_struct(self._footer(notes))
        self._put([*tail, footer, len(footer).to_bytes(4, "little"), MAGIC])

    def _put(self, pieces: Sequence[bytes | memoryview]) -> None:
        self._write(pieces)
        self._at += sum(map(len, pieces))

    def _footer(self, notes: Mapping[str, str]) -> Struct:
        fields = Struct(self._template.fields())
        kept: list[Struct] = fields.listed(5, STRUCT) or []
        added = [
            Struct({1: (BINARY, key.encode()), 2: (BINARY, text.encode())})
            for key, text in notes.items()
        ]
        fields[3] = (I64, self._rows)
        fields[4] = listed(STRUCT, self._row_groups)
        fields[5] = listed(STRUCT, [*kept, *added])
        return Struct(sorted(fields.items()))


def encode_pages(chunks: Sequence[tuple[EncodedPages | None, int]]) -> list[bytes | None]:
    """Return OffsetIndexes of chunks that begin at these offsets: what `thrift.encode_struct` would
    give, all at once."""
    known = [pages for pages, _ in chunks if pages is not None]
    locations = np.tile(np.array(_PAGE, np.int64), (sum(len(p.offsets) for p in known), 1))
    counts = [pages.byte_counts for pages in known if pages.byte_counts is not None]
    row = 0
    for pages, start in chunks:
        if pages is not None:
            here = locations[row : row + len(pages.offsets)]
            here[:, 1], here[:, 3], here[:, 5] = (
                pages.offsets + start,
                pages.sizes,
                pages.first_rows,
            )
            row += len(here)
    locations[:, 1::2] <<= 1  # a sign, which is their lowest bit
    located = _Stream(locations.ravel())
    counted = _Stream(2 * np.concatenate(counts) if counts else np.empty(0, np.int64))
    found: list[bytes | None] = []
    for pages, _ in chunks:
        if pages is None:
            found.append(None)
            continue
        pages_count = len(pages.offsets)
        parts = [list_head(pages_count, STRUCT), located.take(len(_PAGE) * pages_count)]
        if pages.byte_counts is not None:
            parts += (list_head(pages_count, I64), counted.take(pages_count))
        found.append(b"".join([*parts, b"\0"]))
    return found


class _Stream:
    """Numbers as bytes, to be taken from the first on."""

    def __init__(self, values: Numbers) -> None:
        self._bytes, self._ends = packed(values)
        self._taken = self._at = 0

    def take(self, count: int) -> bytes:
        """Return the bytes of the next numbers."""
        at, self._taken = self._at, self._taken + count
        self._at = int(self._ends[self._taken - 1]) if self._taken else 0
        return self._bytes[at : self._at].tobytes()
