"""Puts rows into objects of Parquet that any program reads."""

from __future__ import annotations

import io
from collections.abc import Generator, Iterable
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from lakebed.ports.object_store import ObjectStore
from lakebed.sorted_files.format.object_sink import ObjectSink, finish_object
from lakebed.sorted_files.format.row_groups import cut

ROW_GROUP_BYTES = 32 << 20
"""Most bytes of a row group, in memory."""
ROW_GROUP_ROWS = 1 << 20
"""Most rows of a row group, however narrow its rows are. Who encodes or decodes a column holds up
to 2 bytes of levels, and 4 of a dictionary's index, for each row: 6 MiB of so many, fewer than the
bytes that a row group may have. Of one bit a row, 32 MiB would be 268 million rows, and 1.5 GiB of
levels and indices."""


class ParquetPut(NamedTuple):
    """An object that was put.

    checksum: CRC-64/NVME of its bytes.
    """

    rows: int
    bytes: int
    checksum: int


def row_groups_of(
    batches: Iterable[pa.RecordBatch],
    *,
    bytes_max: int = ROW_GROUP_BYTES,
    rows_max: int = ROW_GROUP_ROWS,
) -> Generator[pa.Table, None, None]:
    """Yield rows as row groups are to be. bytes_max, rows_max: of one, in memory, unless one row
    alone is larger."""
    held: list[pa.RecordBatch] = []
    size = rows = 0
    for batch in batches:
        for part in cut(batch, rows_max, bytes_max):
            if held and (size + part.nbytes > bytes_max or rows + len(part) > rows_max):
                yield pa.Table.from_batches(held)
                held, size, rows = [], 0, 0
            held.append(part)
            size += part.nbytes
            rows += len(part)
    if held:
        yield pa.Table.from_batches(held)


def put_parquet(
    objects: ObjectStore,
    path: str,
    columns: pa.Schema,
    row_groups: Iterable[pa.Table],
    *,
    bytes_max: int | None = None,
) -> ParquetPut:
    """Put rows if absent. bytes_max: after which no more is taken of `row_groups`; None: all is.

    Raises:
        ObjectExistsError: another object has the path. As `row_groups` and `finish_object`: nothing
            became visible, or it is not known.
    """
    writer = objects.create(path)
    sink = ObjectSink(writer)
    rows = 0
    try:
        file = pa.PythonFile(_Out(sink))
        with pq.ParquetWriter(
            file, columns, compression="zstd", compression_level=1, write_page_checksum=True
        ) as out:
            for row_group in row_groups:
                out.write_table(row_group, row_group_size=max(1, row_group.num_rows))
                rows += row_group.num_rows
                if bytes_max is not None and sink.size >= bytes_max:
                    break
        finish_object(objects, writer, path=path, size=sink.size, checksum=sink.checksum)
    finally:
        writer.abort()
    return ParquetPut(rows, sink.size, sink.checksum)


def put_bytes(objects: ObjectStore, path: str, body: bytes) -> None:
    """Put a small object if absent. Raises: as `finish_object`."""
    writer = objects.create(path)
    sink = ObjectSink(writer)
    try:
        sink.write([body])
        finish_object(objects, writer, path=path, size=sink.size, checksum=sink.checksum)
    finally:
        writer.abort()


class _Out(io.RawIOBase):
    """An object on its way, as Arrow writes to it."""

    def __init__(self, sink: ObjectSink) -> None:
        super().__init__()
        self._sink = sink

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:  # noqa: ANN401 - any buffer
        piece = memoryview(data).cast("B")
        self._sink.write([piece])
        return len(piece)
