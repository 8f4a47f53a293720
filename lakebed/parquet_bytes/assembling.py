"""A Parquet file put together from row groups that are bytes already, whoever encoded them.

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

from lakebed.parquet_bytes.encoded import EncodedRowGroup, listed, shifted
from lakebed.parquet_bytes.footer import MAGIC, Footer
from lakebed.parquet_bytes.page_index import Pages
from lakebed.parquet_bytes.thrift import (
    BINARY,
    BOOL,
    I32,
    I64,
    STRUCT,
    Struct,
    encode_struct,
    natural,
    varint,
)

Write = Callable[[Sequence[bytes | memoryview]], object]


_OFFSET_INDEX, _COLUMN_INDEX = 4, 6
"""Fields of a column chunk: where they are; how long they are comes next."""


_I32, _I64 = b"\x15", b"\x16"
"""Heads of fields, each the next in its struct."""


class _Placed(msgspec.Struct, frozen=True):
    """A chunk that has been written from `start` on, and what of it goes into the tail."""

    column: Struct
    start: int
    pages: Pages | None
    byte_counts: tuple[int, ...] | None
    bounds: bytes | None

    def offset_index(self) -> bytes | None:
        """Return where its pages are, as it is stored."""
        if self.pages is None:
            return None
        return encode_pages(self.pages, self.start, self.byte_counts)


class Assembly:
    """A file being written. write: takes some bytes and puts them behind what it took before.

    sorted_by: that many columns, from the first on, are what rows are sorted by.
    """

    def __init__(self, template: Footer, write: Write, *, sorted_by: int) -> None:
        self._template = template
        self._write = write
        self._sorting = [
            Struct({1: (I32, place), 2: (BOOL, False), 3: (BOOL, False)})
            for place in range(sorted_by)
        ]
        self._at = 0
        self._rows = 0
        self._groups: list[Struct] = []
        self._placed: list[_Placed] = []
        self._put([MAGIC])

    def add(self, group: EncodedRowGroup) -> None:
        """Write a row group behind the others."""
        assert len(group.chunks) == len(self._template.leaves), "a chunk for each leaf"
        columns = []
        start = self._at
        for chunk in group.chunks:
            column = Struct({2: (I64, 0), 3: (STRUCT, shifted(chunk.metadata, start))})
            columns.append(column)
            self._placed.append(
                _Placed(column, start, chunk.pages, chunk.byte_counts, chunk.bounds)
            )
            start += chunk.size
        size = sum(chunk.bytes_count for chunk in group.chunks)
        fields = Struct({1: listed(STRUCT, columns), 2: (I64, size), 3: (I64, group.rows)})
        if self._sorting:
            fields[4] = listed(STRUCT, self._sorting)
        fields[5], fields[6] = (I64, self._at), (I64, start - self._at)
        self._groups.append(fields)
        self._rows += group.rows
        self._put([piece for chunk in group.chunks for piece in chunk.pieces])
        assert self._at == start, "a chunk has as many bytes as it says"

    def end(self, notes: Mapping[str, str]) -> None:
        """Write the tail. notes: texts for the footer, beside the template's."""
        tail: list[bytes] = []
        at = self._at
        for field in (_COLUMN_INDEX, _OFFSET_INDEX):
            for placed in self._placed:
                raw = placed.bounds if field == _COLUMN_INDEX else placed.offset_index()
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
        fields[4] = listed(STRUCT, self._groups)
        fields[5] = listed(STRUCT, [*kept, *added])
        return Struct(sorted(fields.items()))


def encode_pages(pages: Pages, shift: int, byte_counts: Sequence[int] | None) -> bytes:
    """Return an OffsetIndex: what `thrift.encode_struct` would give, several times as fast."""
    parts = [_list_head(len(pages.offsets), STRUCT, 0x19)]
    for offset, size, row in zip(pages.offsets, pages.sizes, pages.first_rows, strict=True):
        parts += (_I64, natural(offset + shift), _I32, natural(size), _I64, natural(row), b"\0")
    if byte_counts is not None:
        parts.append(_list_head(len(byte_counts), I64, 0x19))
        parts += map(natural, byte_counts)
    return b"".join([*parts, b"\0"])


def _list_head(count: int, kind: int, field: int) -> bytes:
    """Return the head of a field, the next in its struct, that is a list."""
    if count < 15:
        return bytes([field, count << 4 | kind])
    return bytes([field, 0xF0 | kind]) + varint(count)
