"""How each column is written. docs/design/sorted_files.md has the figures behind the choices."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lakebed.model.schema import Schema
from lakebed.model.types import ListOf, MapOf, Primitive, StructOf, Type

PAGE_ROWS_MAX = 4096
PAGE_BYTES = 1024 * 1024
WRITE_BATCH_ROWS = 1024
DICTIONARY_VALUES_MAX = 4096
DICTIONARY_REPEATS_MIN = 8
"""A value column has a dictionary when each of its values comes at least this often."""

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


def writer_options(schema: Schema, first: pa.Table, row_bytes: int) -> dict[str, Any]:
    """Return options of `pyarrow.parquet.ParquetWriter`. first: the rows of the first row group."""
    keys = [field.name for field in schema.key_fields]
    dictionaries = [f.name for f in schema.values if _repeats(f.type, first.column(f.name))]
    encodings: dict[str, str] = {}
    ambiguous = set()  # a field called "a.b" beside a member b of a: pyarrow tells them not apart
    for field in schema.fields:
        for path, encoding in _encodings(field.name, field.type, is_key=field.name in keys):
            if path in encodings or path in dictionaries:
                ambiguous.add(path)
            encodings[path] = encoding
    return {
        "compression": "zstd",
        "compression_level": 1,
        "use_dictionary": dictionaries,
        "column_encoding": {
            path: encoding
            for path, encoding in encodings.items()
            if path not in ambiguous and path not in dictionaries
        },
        "write_statistics": keys,
        "write_page_index": True,
        "write_page_checksum": True,
        "max_rows_per_page": PAGE_ROWS_MAX,
        "data_page_size": PAGE_BYTES,
        # Pages are cut between write batches only: few rows at a time where rows are wide.
        "write_batch_size": max(1, min(WRITE_BATCH_ROWS, PAGE_BYTES // max(1, row_bytes))),
        "sorting_columns": [pq.SortingColumn(place) for place in range(len(keys))],
        "store_schema": True,
    }


def _repeats(type_: Type, column: pa.ChunkedArray) -> bool:
    if not isinstance(type_, Primitive) or type_.name not in ("string", "binary"):
        return False
    distinct = pc.count_distinct(column).as_py()  # bounded: one value
    return bool(distinct <= min(DICTIONARY_VALUES_MAX, len(column) // DICTIONARY_REPEATS_MIN))


def _encodings(path: str, type_: Type, *, is_key: bool = False) -> list[tuple[str, str]]:
    """Return the encoding of each Parquet column under a field; none: plain."""
    match type_:
        case Primitive("string" | "binary"):
            return [(path, "DELTA_BYTE_ARRAY" if is_key else "DELTA_LENGTH_BYTE_ARRAY")]
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
            return []
