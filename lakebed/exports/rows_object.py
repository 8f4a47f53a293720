"""Rows of a table on their way into an object of Parquet for other programs: encoded as files of
the table are, without their notes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa

from lakebed.model.schema import Schema
from lakebed.parquet_bytes.assembling import Assembly
from lakebed.ports.object_store import ObjectStore
from lakebed.query.parquet_objects import ParquetPut
from lakebed.sorted_files.format.object_sink import ObjectSink, finish_object
from lakebed.sorted_files.format.row_groups import densest
from lakebed.sorted_files.writing.encoding_row_groups import RowGroupEncoder


def put_rows(
    objects: ObjectStore,
    path: str,
    row_groups: Iterable[pa.Table],
    *,
    encoder: RowGroupEncoder,
    sorted_by: int,
) -> ParquetPut:
    """Put sorted rows if absent. sorted_by: that many columns, from the first on, are what they are
    sorted by.

    Raises:
        ObjectExistsError: another object has the path. As `row_groups` and `finish_object`: nothing
            became visible, or it is not known.
    """
    writer = objects.create(path)
    sink, rows = ObjectSink(writer, has_blocks=False), 0
    try:
        assembly = Assembly(encoder.template, sink.write, sorted_by=sorted_by)
        for row_group in row_groups:
            assembly.add(encoder.encode(row_group, densest(row_group)))
            rows += row_group.num_rows
        assembly.end({})
        finish_object(objects, writer, path=path, size=sink.size, checksum=sink.checksum)
    finally:
        writer.abort()
    return ParquetPut(rows, sink.size, sink.checksum)


def columns_sorted(schema: Schema, columns: Sequence[str]) -> int:
    """Return by how many of some columns, from the first on, rows in key order are sorted."""
    keys = [field.name for field in schema.key_fields]
    return next(
        (n for n, pair in enumerate(zip(keys, columns, strict=False)) if pair[0] != pair[1]),
        min(len(keys), len(columns)),
    )
