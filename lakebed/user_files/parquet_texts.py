"""Chooses which texts of users' Parquet files are read as dictionaries: a value that is stored once
may be in every row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lakebed.user_files.plain_sizes import plain_bytes

TEXTS_BYTES_MAX = 32 << 20
"""Most bytes of one column in a batch, if each value were the longest of its dictionary: above it,
the column is read as a dictionary, and made plain a few rows at a time."""
SHARED_BYTES_MAX = 1 << 30
"""Most bytes, at the worst, of one column in a batch whose values share beginnings
(DELTA_BYTE_ARRAY)."""


def long_texts(path: Path, metadata: pq.FileMetaData, row_group: int, rows_max: int) -> list[str]:
    """Return the columns of a row group, by their paths, that are read as dictionaries.

    rows_max: of a batch.
    """
    facts = metadata.row_group(row_group)
    doubtful: list[tuple[str, int]] = []
    for index in range(facts.num_columns):
        chunk = facts.column(index)
        if chunk.physical_type != "BYTE_ARRAY" or not any("DICT" in e for e in chunk.encodings):
            continue
        is_flat = chunk.num_values == facts.num_rows
        values = min(rows_max, chunk.num_values) if is_flat else chunk.num_values
        if values * chunk.total_uncompressed_size > TEXTS_BYTES_MAX:
            doubtful.append((chunk.path_in_schema, values))
    if not doubtful:
        return []
    names = [name for name, _ in doubtful]
    with pq.ParquetFile(
        path, metadata=metadata, read_dictionary=names, pre_buffer=False, buffer_size=64 * 1024
    ) as file:
        found = []
        for name, values in doubtful:
            first = next(
                file.iter_batches(1, row_groups=[row_group], columns=[name], use_threads=False),
                None,
            )
            longest = 0 if first is None else _longest(first.column(0))
            if values * longest > TEXTS_BYTES_MAX:
                found.append(name)
        return found


def rows_of_shared(metadata: pq.FileMetaData, row_group: int) -> int:
    """Return how many rows a batch may have, because of values that share bytes."""
    facts = metadata.row_group(row_group)
    sizes = [
        chunk.total_uncompressed_size
        for chunk in map(facts.column, range(facts.num_columns))
        if "DELTA_BYTE_ARRAY" in chunk.encodings
    ]
    return int(max(1, SHARED_BYTES_MAX // max([1, *sizes])))


def _longest(column: Any) -> int:  # noqa: ANN401 - Arrow's arrays, each with parts of its own
    """Return the bytes of the longest value of a dictionary, wherever in a column it is."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return int(plain_bytes(column.dictionary).max(initial=0))
    if pa.types.is_struct(kind):
        parts = [column.field(index) for index in range(kind.num_fields)]
    elif pa.types.is_map(kind):
        parts = [column.keys, column.items]
    else:
        parts = [column.values] if kind.num_fields else []
    return max(map(_longest, parts), default=0)
