"""Footers: what a Parquet file says of its columns and, one row group at a time, of their chunks.

    footer = Footer(tail, tail_offset)
    row_group = footer.row_group(7)
    chunk = row_group.chunks[2]
    pages = page_index.pages_of(footer, row_group, chunk)

Only the row group that is asked for becomes objects. Offsets are those in the file, checked to lie
in it: chunks before the tail, page indexes in it. Numbers of types, encodings and codecs that
Parquet may add later are handed on: who reads decides.
"""

from __future__ import annotations

import enum
from typing import Any

import msgspec

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

MAGIC = b"PAR1"
_TRAILER_BYTES = 8
NESTED_MAX = 100
"""Groups of columns inside each other."""


class Physical(enum.IntEnum):
    """The physical type of a column's values."""

    BOOLEAN = 0
    INT32 = 1
    INT64 = 2
    INT96 = 3
    FLOAT = 4
    DOUBLE = 5
    BYTE_ARRAY = 6
    FIXED_LEN_BYTE_ARRAY = 7


class Encoding(enum.IntEnum):
    """The encoding by which values become a page."""

    PLAIN = 0
    PLAIN_DICTIONARY = 2
    RLE = 3
    BIT_PACKED = 4
    DELTA_BINARY_PACKED = 5
    DELTA_LENGTH_BYTE_ARRAY = 6
    DELTA_BYTE_ARRAY = 7
    RLE_DICTIONARY = 8
    BYTE_STREAM_SPLIT = 9


class Codec(enum.IntEnum):
    """The compression codec of pages: the two that are written here."""

    UNCOMPRESSED = 0
    ZSTD = 6


class Repetition(enum.IntEnum):
    """The repetition of a field: how often a value comes in what holds it."""

    REQUIRED = 0
    OPTIONAL = 1
    REPEATED = 2


class ParquetColumn(msgspec.Struct, frozen=True):
    """A column of Parquet's.

    path: names from the row down.
    repetition: its own.
    definition_max, repetition_max: the highest levels that its pages may have; 0 and 0: each row
        has one value, and there are no levels.
    type_length: bytes of a FIXED_LEN_BYTE_ARRAY, else 0.
    """

    path: tuple[str, ...]
    physical: int
    repetition: int
    type_length: int
    definition_max: int
    repetition_max: int


class Statistics(msgspec.Struct, frozen=True):
    """Statistics of a column chunk.

    min, max: as PLAIN writes a value, strings without their length; perhaps shortened where not
    exact."""

    min: bytes | None
    max: bytes | None
    nulls: int | None
    min_is_exact: bool | None
    max_is_exact: bool | None


class Chunk(msgspec.Struct, frozen=True):
    """A column's pages in one row group: `[start, end)` of the file, a dictionary first if any.

    bytes_count: of the pages without compression, headers included.
    values: nulls included; where nothing is repeated, as many as the group has rows.
    column_index, offset_index: where they begin and end in the file.
    """

    column: int
    physical: int
    codec: int
    encodings: tuple[int, ...]
    values: int
    start: int
    end: int
    data_page_offset: int
    dictionary_page_offset: int | None
    bytes_count: int
    statistics: Statistics | None
    column_index: tuple[int, int] | None
    offset_index: tuple[int, int] | None


class RowGroup(msgspec.Struct, frozen=True):
    """A row group.

    chunks: one for each column.
    """

    rows: int
    bytes_count: int
    chunks: tuple[Chunk, ...]


class Footer:
    """A file's footer. tail: the file's last bytes, from `tail_offset` to the end.

    columns: of the schema; elements: the same as they are stored; rows: of the whole file;
    row_groups_count: how many row groups; key_values: the notes; created_by: who wrote it.
    outside: all but row groups as it is stored; row_group_offsets: where each row group begins in
    the tail, and where the last ends.

    Raises:
        MalformedError: these bytes do not end a Parquet file.
    """

    def __init__(self, tail: bytes, tail_offset: int) -> None:
        self.tail = tail
        self.tail_offset = tail_offset
        self._at = _footer_at(tail)
        fields = self._fields(Reader(tail, self._at))
        self.rows: int = _counted(fields.need(3, I64))
        elements: list[Struct] = fields.listed(2, STRUCT) or []
        self.columns = _columns(elements)
        self.elements = [one for one in elements[1:] if not one.find(5, I32)]
        self.key_values = _key_values(fields.listed(5, STRUCT) or [])
        self.created_by = _text(fields.find(6, BINARY) or b"")
        self.outside = fields

    @property
    def row_groups_count(self) -> int:
        return max(0, len(self.row_group_offsets) - 1)

    def row_group(self, row_group: int) -> RowGroup:
        """Return a row group.

        Raises:
            MalformedError: it contradicts the columns, or does not lie in the file.
        """
        return self.row_group_of(self.row_group_fields(row_group))

    def row_group_of(self, fields: Struct) -> RowGroup:
        """Return a row group that is stored like this.

        Raises:
            MalformedError: it contradicts the columns, or does not lie in the file.
        """
        found: list[Struct] = fields.listed(1, STRUCT) or []
        if len(found) != len(self.columns):
            raise MalformedError("a row group has other columns than the schema")
        rows = _counted(fields.need(3, I64))
        chunks = [self._chunk(index, chunk, rows) for index, chunk in enumerate(found)]
        return RowGroup(rows, _counted(fields.need(2, I64)), tuple(chunks))

    def row_group_fields(self, row_group: int) -> Struct:
        """Return a row group as it is stored, unchecked.

        Raises:
            MalformedError: it is none.
        """
        return Reader(self.tail, self.row_group_offsets[row_group]).struct()

    def fields(self) -> Struct:
        """Return the whole footer as it is stored, unchecked, every row group in it.

        Raises:
            MalformedError: it is none.
        """
        return Reader(self.tail, self._at).struct()

    def _fields(self, reader: Reader) -> Struct:
        """Return what is outside of row groups; remember where those begin."""
        found = Struct()
        self.row_group_offsets: list[int] = []
        number, kind = reader.field(0)
        while kind:
            if number in found:
                raise MalformedError(f"field {number} comes twice")
            if number == 4 and kind == LIST:
                element, count = reader.list_head()
                if element != STRUCT and count:
                    raise MalformedError("row groups are no structs")
                for _ in range(count):
                    self.row_group_offsets.append(reader.at)
                    reader.skip(STRUCT)
                self.row_group_offsets.append(reader.at)
            elif kind > BOOL + 1:
                found[number] = (kind, reader.value(kind))
            number, kind = reader.field(number)
        if reader.at > len(self.tail) - _TRAILER_BYTES:
            raise MalformedError("a footer reaches behind its end")
        return found

    def _chunk(self, column: int, fields: Struct, rows: int) -> Chunk:
        if fields.find(1, BINARY) is not None:
            raise MalformedError("a column chunk lies in another file")
        meta: Struct = fields.need(3, STRUCT)
        data_page, size = _counted(meta.need(9, I64)), _counted(meta.need(7, I64))
        dictionary = meta.find(11, I64)
        # Some writers name a dictionary at 0 where there is none; without rows the pages lie at 0.
        if dictionary is not None and (dictionary <= 0 or 0 < data_page <= dictionary):
            dictionary = None
        start = dictionary if dictionary is not None else data_page
        if (size and start < len(MAGIC)) or start + size > self.tail_offset:
            raise MalformedError("a column chunk does not lie in its file")
        values = _counted(meta.need(5, I64))
        if not self.columns[column].repetition_max and values != rows:
            raise MalformedError("a column chunk has other rows than its row group")
        return Chunk(
            column=column,
            physical=meta.need(1, I32),
            codec=meta.need(4, I32),
            encodings=tuple(meta.listed(2, I32) or ()),
            values=values,
            start=start,
            end=start + size,
            data_page_offset=data_page,
            dictionary_page_offset=dictionary,
            bytes_count=_counted(meta.need(6, I64)),
            statistics=_statistics(meta.find(12, STRUCT)),
            column_index=self._range(fields, 6, 7),
            offset_index=self._range(fields, 4, 5),
        )

    def _range(self, fields: Struct, offset: int, length: int) -> tuple[int, int] | None:
        """Return where a part of the tail is, as offsets in the file."""
        start, size = fields.find(offset, I64), fields.find(length, I32)
        if start is None or size is None:
            return None
        if start < self.tail_offset or size < 0 or start + size > self.tail_offset + self._at:
            raise MalformedError("a page index does not lie in its file's tail")
        return start, start + size


def _footer_at(tail: bytes) -> int:
    """Return where the footer begins in the tail."""
    if len(tail) < _TRAILER_BYTES or tail[-4:] != MAGIC:
        raise MalformedError("no Parquet file ends here")
    at = len(tail) - _TRAILER_BYTES - int.from_bytes(tail[-8:-4], "little")
    if at < 0:
        raise MalformedError("a footer is longer than the tail")
    return at


def _columns(elements: list[Struct]) -> tuple[ParquetColumn, ...]:
    """Return the columns of a schema, which stands as a tree written down from the root."""
    if not elements:
        raise MalformedError("a footer has no schema")
    found: list[ParquetColumn] = []
    # Of each group that is open: how many of its parts are to come, its path and its levels.
    open_: list[list[Any]] = [[_counted(elements[0].find(5, I32) or 0), (), 0, 0]]
    for element in elements[1:]:
        while open_ and not open_[-1][0]:
            open_.pop()
        if not open_ or len(open_) > NESTED_MAX:
            raise MalformedError("a schema is no tree")
        open_[-1][0] -= 1
        _, path, definition, repetition = open_[-1]
        kind = element.find(3, I32) or 0
        definition += kind != Repetition.REQUIRED
        repetition += kind == Repetition.REPEATED
        path = (*path, _text(element.need(4, BINARY)))
        children = element.find(5, I32)
        if children:
            open_.append([_counted(children), path, definition, repetition])
            continue
        length = _counted(element.find(2, I32) or 0)
        physical = element.need(1, I32)
        found.append(ParquetColumn(path, physical, kind, length, definition, repetition))
    if any(remaining for remaining, *_ in open_):
        raise MalformedError("a schema is no tree")
    return tuple(found)


def _key_values(pairs: list[Struct]) -> dict[bytes, bytes]:
    return {pair.need(1, BINARY): pair.find(2, BINARY) or b"" for pair in pairs}


def _statistics(fields: Struct | None) -> Statistics | None:
    if fields is None:
        return None
    return Statistics(
        min=fields.find(6, BINARY),
        max=fields.find(5, BINARY),
        nulls=fields.find(3, I64),
        min_is_exact=fields.find(8, BOOL),
        max_is_exact=fields.find(7, BOOL),
    )


def _counted(value: int) -> int:
    if value < 0:
        raise MalformedError("a count or offset is negative")
    return value


def _text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise MalformedError("a name is no UTF-8") from error
