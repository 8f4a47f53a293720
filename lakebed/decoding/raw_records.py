"""Records as sources give them, as Arrow batches. No record is a Python object."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.errors import CorruptError

HEADERS: Final = pa.map_(pa.string(), pa.binary())
"""A header may come several times; their order is the record's."""

RAW_RECORDS: Final = pa.schema(
    [
        pa.field("value", pa.binary()),
        pa.field("key", pa.binary()),
        pa.field("headers", HEADERS),
        pa.field("time", pa.timestamp("us", tz="UTC")),
        pa.field("position", pa.int64(), nullable=False),
    ],
)
"""value, key: null where the record has none, which is not the same as empty. time: that the source
gives the record; null: it gives none. position: of the record, rising."""

_LINE_FEED = 10


class RawRecordsCodec:
    """Writes batches of records as bytes, and reads them."""

    def encoded(self, batch: pa.RecordBatch) -> bytes:
        """Return a batch in Arrow's form for streams."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        body: bytes = sink.getvalue().to_pybytes()
        return body

    def decoded(self, body: bytes) -> pa.RecordBatch:
        """Return the batch.

        Raises:
            CorruptError: the bytes are none of records.
        """
        try:
            with pa.ipc.open_stream(pa.py_buffer(body)) as reader:
                batch = reader.read_next_batch()
            batch.validate()
        except (pa.ArrowException, OSError, StopIteration) as error:
            raise CorruptError("not a batch of records", reason=error) from None
        if not batch.schema.equals(RAW_RECORDS):
            raise CorruptError("not a batch of records", columns=len(batch.schema))
        return batch


def raw_records(
    *,
    value: pa.Array,
    position: pa.Array,
    key: pa.Array | None = None,
    headers: pa.Array | None = None,
    time: pa.Array | None = None,
) -> pa.RecordBatch:
    """Return records of columns; those that are left out are null."""
    columns = {"value": value, "key": key, "headers": headers, "time": time, "position": position}
    arrays = [
        pa.nulls(len(value), field.type) if columns[field.name] is None else columns[field.name]
        for field in RAW_RECORDS
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=RAW_RECORDS)


def lines_as_records(lines: bytes, begin: int) -> pa.RecordBatch:
    """Return a record for each line, without its line feed. Its position is that of its first byte.

    lines: each ended by a line feed.
    begin: position of the first byte.
    """
    bytes_ = np.frombuffer(lines, np.uint8)
    ends = np.flatnonzero(bytes_ == _LINE_FEED) + 1
    offsets = np.zeros(len(ends) + 1, np.int32)
    offsets[1:] = ends
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(lines)]
    whole = pa.BinaryArray.from_buffers(pa.binary(), len(ends), buffers)
    positions = pa.array(offsets[:-1].astype(np.int64) + begin)
    return raw_records(value=pc.binary_slice(whole, 0, -1), position=positions)
