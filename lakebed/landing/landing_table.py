"""A landing table: a feed's records as they came, by source split and position.

It is a table like any other: ranges of positions, replay, retention, compaction and `fsck` are
those of tables.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.model.schema import schema_of
from lakebed.ports.record_source import RecordLines
from lakebed.sorted_files.format.arrow_schema import arrow_schema

LANDING_SCHEMA = schema_of(
    row_keys={"source_split": "string", "position": "int64"}, values={"value": "binary"}
)
_COLUMNS = arrow_schema(LANDING_SCHEMA)
_LINE_FEED = 10


def landed_rows(source_split: str, records: RecordLines) -> pa.RecordBatch:
    """Return the rows of records: a line each, without its line feed. No line is a Python object.

    A position is that of the line's first byte.
    """
    bytes_ = np.frombuffer(records.lines, np.uint8)
    ends = np.flatnonzero(bytes_ == _LINE_FEED) + 1
    offsets = np.zeros(len(ends) + 1, np.int32)
    offsets[1:] = ends
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(records.lines)]
    lines = pa.BinaryArray.from_buffers(pa.binary(), len(ends), buffers)
    names = pa.array([source_split]).take(pa.array(np.zeros(len(ends), np.int64)))
    positions = pa.array(offsets[:-1].astype(np.int64) + records.begin)
    values = pc.binary_slice(lines, 0, -1)
    return pa.RecordBatch.from_arrays([names, positions, values], schema=_COLUMNS)
