"""Row groups encoded by pyarrow: every type, every option, and what the kernels are held to.

Each becomes a small file in memory, of which the column chunks are taken as they are.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from lakebed.parquet_bytes.encoded import EncodedChunk, chunks_of
from lakebed.parquet_bytes.footer import MAGIC, Encoding, Footer
from lakebed.parquet_bytes.thrift import I32, I64, STRUCT, Struct


def encode_by_arrow(rows: pa.Table, options: Mapping[str, object]) -> list[EncodedChunk]:
    """Return the column chunks of one row group. options: of `pyarrow.parquet.ParquetWriter`."""
    file = _file(rows, options)
    footer = _footer(file)
    if footer.row_groups_count != 1:
        raise AssertionError("one row group was written")
    return [_without_wrong_counts(chunk) for chunk in chunks_of(footer, 0, file, 0)]


def template_of(columns: pa.Schema, options: Mapping[str, object]) -> Footer:
    """Return the footer of a file without rows."""
    return _footer(_file(columns.empty_table(), options))


def _without_wrong_counts(chunk: EncodedChunk) -> EncodedChunk:
    """Leave out how many bytes strings have, where pyarrow counts what they share only once."""
    encodings = chunk.metadata.listed(2, I32) or []
    size_statistics = chunk.metadata.find(16, STRUCT)
    if Encoding.DELTA_BYTE_ARRAY not in encodings or size_statistics is None:
        return chunk
    metadata = Struct(chunk.metadata)
    metadata[16] = (
        STRUCT,
        Struct((field, one) for field, one in size_statistics.items() if field != 1),
    )
    pages = chunk.pages
    if pages is not None:
        pages = msgspec.structs.replace(pages, byte_counts=None)
    return msgspec.structs.replace(chunk, metadata=metadata, pages=pages)


def _file(rows: pa.Table, options: Mapping[str, object]) -> memoryview:
    out = pa.BufferOutputStream()
    with pq.ParquetWriter(out, rows.schema, **options) as writer:
        if len(rows):
            writer.write_table(rows, row_group_size=len(rows))
    return memoryview(out.getvalue()).cast("B")


def _footer(file: memoryview) -> Footer:
    """Return a file's footer; the tail begins behind the last chunk."""
    size = int.from_bytes(file[-8:-4], "little") + 8
    footer = Footer(bytes(file[-size:]), len(file) - size)
    end = len(MAGIC)
    for row_group in range(footer.row_groups_count):
        for column in footer.row_group_fields(row_group).listed(1, STRUCT) or []:
            meta = column.need(3, STRUCT)
            start = meta.find(11, I64) or meta.need(9, I64)
            end = max(end, start + meta.need(7, I64))
    return Footer(bytes(file[end:]), end)
