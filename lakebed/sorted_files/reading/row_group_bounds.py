"""Reads from a file's statistics the bounds of values in a row group, or in pages, as literals of
predicates."""

from __future__ import annotations

import struct
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq

from lakebed.model.predicates.bounds import NOTHING_KNOWN, FieldBounds
from lakebed.model.predicates.literals import Literal
from lakebed.parquet_bytes.footer import Physical
from lakebed.parquet_bytes.page_index import PageBounds
from lakebed.sorted_files.reading.column_matching import Match
from lakebed.sorted_files.reading.tails import Described

NO_VALUES = FieldBounds(may_have_values=False)
CUT_BYTES_MIN = 64
"""Some writers cut bounds of pages of this length and above."""

_NUMBERS = {
    Physical.BOOLEAN: struct.Struct("<?"),
    Physical.INT32: struct.Struct("<i"),
    Physical.INT64: struct.Struct("<q"),
    Physical.FLOAT: struct.Struct("<f"),
    Physical.DOUBLE: struct.Struct("<d"),
}


class RowGroupBounds:
    """Bounds of fields in one row group. match: how the file's columns become those wanted."""

    def __init__(self, tail: Described, row_group: int, match: Match) -> None:
        self._columns = tail.columns
        metadata, index = tail.metadata_of(row_group)
        self._row_group: pq.RowGroupMetaData = metadata.row_group(index)
        self._match = match

    def of(self, field: str) -> FieldBounds:
        """Return what is known of a field's values."""
        wanted = self._match.wanted.get_field_index(field)
        index = self._match.indices[wanted]
        if index is None:  # the file is older than the field
            return NO_VALUES
        column = self._columns.get_field_index(self._match.names[index])
        type_ = self._columns.field(column).type
        if pa.types.is_nested(type_):
            return NOTHING_KNOWN
        before = (self._columns.field(earlier).type for earlier in range(column))
        chunk = self._row_group.column(sum(map(column_count, before)))
        found = chunk.statistics
        if found is None:
            return NOTHING_KNOWN
        nulls = found.null_count if found.has_null_count else None
        bounds = FieldBounds(
            may_be_null=nulls != 0,
            may_have_values=nulls is None or nulls < self._row_group.num_rows,
        )
        if not found.has_min_max or pa.types.is_float32(self._match.wanted.field(wanted).type):
            return bounds  # a literal is compared with a float32 as the nearest float32
        least, most = (_literal(raw, type_) for raw in (found.min_raw, found.max_raw))
        return FieldBounds(least, most, bounds.may_be_null, bounds.may_have_values)


def bounds_of_pages(
    found: PageBounds, physical: int, stored: pa.DataType, wanted: pa.DataType
) -> tuple[FieldBounds, ...]:
    """Return what is known of a field's values in each page.

    physical: how its values are stored.
    stored, wanted: its type in the file, and in the table.
    """
    pages = []
    for page, is_null in enumerate(found.all_null):
        if is_null:
            pages.append(NO_VALUES)
            continue
        may_be_null = found.nulls is None or found.nulls[page] > 0
        raw = [_stored(value[page], physical) for value in (found.mins, found.maxs)]
        if pa.types.is_float32(wanted) or None in raw:
            pages.append(FieldBounds(may_be_null=may_be_null))
            continue
        least, most = (None if one is None else _literal(one, stored) for one in raw)
        pages.append(FieldBounds(least, most, may_be_null))
    return tuple(pages)


def _stored(value: bytes, physical: int) -> float | bytes | None:
    """Return a value of a page's bounds; None: nothing is sure."""
    if physical in (Physical.BYTE_ARRAY, Physical.FIXED_LEN_BYTE_ARRAY):
        return value if len(value) < CUT_BYTES_MIN else None
    number = _NUMBERS.get(Physical(physical))
    if number is None or number.size != len(value):
        return None
    found: float = number.unpack(value)[0]
    return found


def column_count(type_: pa.DataType) -> int:
    """Return how many of Parquet's columns hold a field of a type."""
    if type_.num_fields == 0:
        return 1
    return sum(column_count(type_.field(index).type) for index in range(type_.num_fields))


def _literal(raw: float | bytes, type_: pa.DataType) -> Literal | None:
    kinds = pa.types
    if isinstance(raw, bytes):
        if kinds.is_string(type_):
            return _text(raw)
        if kinds.is_decimal(type_):
            return Decimal(int.from_bytes(raw, "big", signed=True)).scaleb(-type_.scale)
        return raw
    if kinds.is_decimal(type_):
        return Decimal(int(raw)).scaleb(-type_.scale)
    if kinds.is_uint32(type_):
        return int(raw) & 0xFFFF_FFFF
    return raw


def _text(raw: bytes) -> str | None:
    """Return text; None: cut inside of a character, so not comparable as text."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return None
