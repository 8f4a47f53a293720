"""Footers that tell of one row group, made of a larger one's pieces: for who keeps no whole tail.

template = footer_template_of(footer, without=(b"notes",))  # kept: one for all files of a table
fields = Reader(raw).struct()                     # raw: a row group, read again
start, end = offset_indexes(fields)               # read them, too
footer, row_group = template.opened(fields, index, start)
"""

from __future__ import annotations

from collections.abc import Container

import msgspec

from lakebed.parquet_bytes.footer import MAGIC, Footer, RowGroup
from lakebed.parquet_bytes.thrift import (
    BINARY,
    I32,
    I64,
    LIST,
    STRUCT,
    MalformedError,
    Struct,
    ThriftList,
    encode_struct,
    list_head,
    zigzag,
)

_OFFSET_INDEX, _COLUMN_INDEX = (4, 5), (6, 7)
"""Fields of a column chunk for each index: where it is, and how long it is."""
_ROWS_HEAD = b"\x16"
"""The head of the field that tells them, behind the one before it."""
_NO_ROW_GROUPS = b"\x49\x0c"
"""A list of no row groups as the first field of a struct."""


class FooterTemplate(msgspec.Struct, frozen=True):
    """A footer as it is stored, but for its row groups: the bytes before and behind them."""

    before: bytes
    behind: bytes

    def opened(self, fields: Struct, index: bytes, index_at: int) -> tuple[Footer, RowGroup]:
        """Return a footer that tells of the columns and has OffsetIndexes, and a row group of it.

        fields: the row group as it is stored.
        index: bytes of the file from `index_at` on, in which its OffsetIndexes are; the
            ColumnIndexes are as if there were none.

        Raises:
            MalformedError: the row group contradicts the columns, or does not lie in the file.
        """
        footer = Footer(index + self._footer(0, list_head(0, STRUCT)), index_at)
        return footer, footer.row_group_of(_without_bounds(fields))

    def alone(self, fields: Struct) -> bytes:
        """Return a file that is nothing but a footer, of just this row group."""
        row_group = encode_struct(_without_bounds(fields))
        return MAGIC + self._footer(fields.need(3, I64), list_head(1, STRUCT) + row_group)

    def _footer(self, rows: int, row_groups: bytes) -> bytes:
        raw = b"".join((self.before, _ROWS_HEAD, zigzag(rows), row_groups, self.behind))
        return raw + len(raw).to_bytes(4, "little") + MAGIC


def footer_template_of(footer: Footer, *, without: Container[bytes]) -> FooterTemplate:
    """Return what a footer tells besides its row groups, and without notes of these names."""
    stored = footer.outside
    before = Struct({field: found for field, found in stored.items() if field < 3})
    behind = Struct({4: (LIST, ThriftList(STRUCT, []))})
    behind.update((field, found) for field, found in stored.items() if field > 4)
    notes: list[Struct] | None = behind.listed(5, STRUCT)
    if notes is not None:
        kept = [note for note in notes if note.find(1, BINARY) not in without]
        behind[5] = (LIST, ThriftList(STRUCT, kept))
    raw = encode_struct(behind)
    if not raw.startswith(_NO_ROW_GROUPS):
        raise AssertionError("a list of nothing has two bytes")
    return FooterTemplate(encode_struct(before)[:-1], raw[len(_NO_ROW_GROUPS) :])


def offset_indexes(fields: Struct) -> tuple[int, int] | None:
    """Return where the OffsetIndexes of a row group lie in the file. None: it has none, or not of
    each column.

    Raises:
        MalformedError: it has no columns.
    """
    chunks: list[Struct] = fields.listed(1, STRUCT) or []
    if not chunks:
        raise MalformedError("a row group without columns")
    at, length = _OFFSET_INDEX
    found = [(chunk.find(at, I64), chunk.find(length, I32)) for chunk in chunks]
    if any(start is None or size is None for start, size in found):
        return None
    return min(start for start, _ in found), max(start + size for start, size in found)


def _without_bounds(fields: Struct) -> Struct:
    """Return a row group as if it had no ColumnIndexes."""
    chunks: list[Struct] = fields.listed(1, STRUCT) or []
    kept = [
        Struct({field: found for field, found in chunk.items() if field not in _COLUMN_INDEX})
        for chunk in chunks
    ]
    return Struct({**fields, 1: (LIST, ThriftList(STRUCT, kept))})
