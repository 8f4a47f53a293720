"""Rows that wait to be sorted, copied behind each other into memory that is used again.

What they were read into is free at once: memory that is new costs the system, which clears it, many
times what a copy does, and batches of others may keep more than their rows.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa


class HeldRows:
    """Room for about so many bytes, which becomes memory where it is filled."""

    def __init__(self, columns: pa.Schema, size: int) -> None:
        self._columns = columns
        self._head = columns.serialize().size + pa.ipc.get_record_batch_size(_empty(columns))
        self._room = pa.py_buffer(np.empty(size + self._head, np.uint8))
        self.clear()

    def clear(self) -> None:
        """Let everything be written over: no batch that was returned is needed any more."""
        self._sink = pa.FixedSizeBufferWriter(self._room)
        self._writer = pa.ipc.new_stream(self._sink, self._columns)
        self._writer.write_batch(_empty(self._columns))  # the columns are written before it

    def held(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return a copy of a batch, or itself where there is no room."""
        begin = self._sink.tell()
        if begin + pa.ipc.get_record_batch_size(batch) > self._room.size:
            return batch
        self._writer.write_batch(batch)
        written = self._room.slice(begin, self._sink.tell() - begin)
        return pa.ipc.read_record_batch(written, self._columns)


def _empty(columns: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([], schema=columns)
