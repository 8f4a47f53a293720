"""Chooses how each column is written. docs/design/sorted_files.md has the figures behind the
choices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.model.schema import Schema
from lakebed.model.types import Decimal, ListOf, MapOf, Primitive, StructOf, Type

PAGE_ROWS_MIN, PAGE_ROWS_MAX = 1024, 4096
PAGE_MEMORY_BYTES = 128 * 1024
"""Rows of a page, all columns together: a lookup decodes so much, and it suits the caches."""
PAGE_BYTES = 1024 * 1024
"""Bytes of a page, or of one row."""
ZSTD_LEVEL = 1
DICTIONARY_VALUES_MAX = 4096
DICTIONARY_REPEATS_MIN = 8
"""A value column has a dictionary when each of its values comes at least this often."""

_PLAIN = "PLAIN"
_DELTA_INTEGERS = (
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "date32",
    "time64[us]",
    "timestamp[us]",
    "timestamp[us, UTC]",
)


class ColumnChoices(msgspec.Struct, frozen=True):
    """The choices of how the columns of a file are written, from its first row group on.

    keys: those of the keys.
    bounded: columns with statistics.
    dictionaries: columns that have one.
    encodings: of each of Parquet's columns by its path, if not plain.
    """

    keys: tuple[str, ...]
    bounded: frozenset[str]
    dictionaries: frozenset[str]
    encodings: dict[str, str]


def choose(schema: Schema, first: pa.Table, *, value_statistics: bool = False) -> ColumnChoices:
    """Return how columns are written.

    first: the rows of the first row group, perhaps with some of the columns only.
    value_statistics: whether columns of values have any, as far as they are of one piece and not
        long.
    """
    there = set(first.column_names)
    keys = tuple(field.name for field in schema.key_fields if field.name in there)
    values = [field for field in schema.values if field.name in there]
    bounded = set(keys)
    if value_statistics:
        bounded |= {field.name for field in values if _is_short(field.type)}
    dictionaries = {f.name for f in values if _repeats(f.type, first.column(f.name))}
    encodings: dict[str, str] = {}
    ambiguous = set()  # a field called "a.b" beside a member b of a: pyarrow takes them for one
    for field in schema.fields:
        for path, encoding in _encodings(field.name, field.type) if field.name in there else ():
            if path in encodings or path in dictionaries:
                ambiguous.add(path)
            encodings[path] = encoding
    left_out = ambiguous | dictionaries
    kept = {
        path: encoding
        for path, encoding in encodings.items()
        if path not in left_out and encoding != _PLAIN
    }
    return ColumnChoices(keys, frozenset(bounded), frozenset(dictionaries), kept)


def page_rows(row_bytes: int) -> int:
    """Return how many rows a page has. row_bytes: of a row in memory."""
    each = max(1, row_bytes)
    rows = max(PAGE_ROWS_MIN, min(PAGE_ROWS_MAX, PAGE_MEMORY_BYTES // each))
    return max(1, min(rows, PAGE_BYTES // each))


def writer_options(
    choices: ColumnChoices, names: Sequence[str], rows: int, codecs: Mapping[str, str]
) -> dict[str, Any]:
    """Return options of `pyarrow.parquet.ParquetWriter` for some of the columns.

    rows: of a page.
    codecs: of each of Parquet's columns, by its path.
    """
    return {
        "compression": dict(codecs),
        "compression_level": {
            path: ZSTD_LEVEL for path, codec in codecs.items() if codec == "zstd"
        },
        "use_dictionary": [name for name in names if name in choices.dictionaries],
        "column_encoding": dict(choices.encodings),
        "write_statistics": [name for name in names if name in choices.bounded],
        "write_page_index": True,
        "write_page_checksum": True,
        "max_rows_per_page": rows,
        "data_page_size": PAGE_BYTES,
        # Pages are cut between write batches only.
        "write_batch_size": rows,
        "store_schema": True,
    }


def _is_short(type_: Type) -> bool:
    """Return whether values of a type have bounds that are worth their bytes."""
    return isinstance(type_, (Primitive, Decimal)) and str(type_) != "binary"


def _repeats(type_: Type, column: pa.ChunkedArray) -> bool:
    if not isinstance(type_, Primitive) or type_.name not in ("string", "binary"):
        return False
    most = min(DICTIONARY_VALUES_MAX, len(column) // DICTIONARY_REPEATS_MIN)
    first = column.slice(0, 2 * most)  # has often more already
    return all(pc.count_distinct(rows).as_py() <= most for rows in (first, column))  # bounded: two


def _encodings(path: str, type_: Type) -> list[tuple[str, str]]:
    """Return the encoding of each Parquet column under a field.

    Never DELTA_LENGTH_BYTE_ARRAY, which a Spark in wide use misreads: docs/decisions/0014.
    """
    match type_:
        case Primitive("string" | "binary"):
            return [(path, "DELTA_BYTE_ARRAY")]
        case Primitive(name) if name in _DELTA_INTEGERS:
            return [(path, "DELTA_BINARY_PACKED")]
        case ListOf(element):
            return _encodings(f"{path}.list.element", element)
        case MapOf(key, value):
            entry = f"{path}.key_value"
            return _encodings(f"{entry}.key", key) + _encodings(f"{entry}.value", value)
        case StructOf(members):
            return [e for m in members for e in _encodings(f"{path}.{m.name}", m.type)]
        case _:
            return [(path, _PLAIN)]
