"""Rows put in order by `lakebed.kernels`: loops over addresses of Arrow buffers.

Columns of text, bytes, and numbers of four or eight bytes are copied once, from the batches as
they were read into those passed on; columns of other types by Arrow's `take`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakebed.kernels.gathering import SLACK, gather_32, gather_64, gather_bits, gather_bytes
from lakebed.kernels.keys import BYTES, INT32, INT64
from lakebed.kernels.merging import merge_order
from lakebed.kernels.sorting import sort_order
from lakebed.model.schema import Field
from lakebed.sorted_files.engines import PLAIN

SEGMENTS_MAX = 1 << 16
BYTES_MAX = (1 << 31) - 1
"""Offsets have 32 bits, numbers of segments 16: more at once is for the plain engine."""

Addresses = npt.NDArray[np.int64]


class CompiledEngine:
    """Merges by a tree of losers, sorts by radix, gathers without a copy in between."""

    def merge(
        self, runs: list[list[pa.RecordBatch]], fields: Sequence[Field]
    ) -> Iterator[pa.RecordBatch]:
        if not _fits(batches := [batch for run in runs for batch in run]):
            return PLAIN.merge(runs, fields)
        firsts = np.cumsum([0, *map(len, runs)], dtype=np.int64)
        runs.clear()
        return self._merge(batches, firsts, fields)

    def sort(
        self, batches: list[pa.RecordBatch], fields: Sequence[Field]
    ) -> Iterator[pa.RecordBatch]:
        if not _fits(batches):
            return PLAIN.sort(batches, fields)
        filled = [batch for batch in batches if len(batch)]
        batches.clear()
        return self._sort(filled, fields)

    def _merge(
        self, batches: list[pa.RecordBatch], firsts: Addresses, fields: Sequence[Field]
    ) -> Iterator[pa.RecordBatch]:
        keys = _Keys(batches, fields)
        order = _Order(batches)
        merge_order(
            keys.kinds, keys.values, keys.bytes, order.starts, firsts, order.segments, order.rows
        )
        yield order.gathered(batches)

    def _sort(
        self, batches: list[pa.RecordBatch], fields: Sequence[Field]
    ) -> Iterator[pa.RecordBatch]:
        keys = _Keys(batches, fields)
        order = _Order(batches)
        row_bits = (max(map(len, batches)) - 1).bit_length()
        sort_order(
            keys.kinds, keys.values, keys.bytes, order.starts, row_bits, order.segments, order.rows
        )
        yield order.gathered(batches)


COMPILED = CompiledEngine()


def _fits(batches: Sequence[pa.RecordBatch]) -> bool:
    return len(batches) < SEGMENTS_MAX and sum(batch.nbytes for batch in batches) <= BYTES_MAX


class _Keys:
    """Where the keys of some batches are, as `kernels.keys` takes them."""

    def __init__(self, batches: Sequence[pa.RecordBatch], fields: Sequence[Field]) -> None:
        columns = [_Column([batch.column(field.name) for batch in batches]) for field in fields]
        self.kinds = np.array([column.kind for column in columns], np.int64)
        self.values = np.array([column.values for column in columns], np.int64)
        self.bytes = np.array([column.bytes for column in columns], np.int64)


class _Column:
    """Where the values of a column are, batch by batch."""

    def __init__(self, arrays: Sequence[pa.Array]) -> None:
        self.arrays = arrays
        self.type = arrays[0].type
        self.kind = _kind(self.type)
        width = 8 if self.kind == INT64 else 4
        count = len(arrays)
        self.values = np.zeros(count, np.int64)
        self.bytes = np.zeros(count, np.int64)
        self.ends = np.zeros(count, np.int64)
        self.size = 0
        for place, array in enumerate(arrays):
            buffers = array.buffers()
            self.values[place] = buffers[1].address + width * array.offset
            if self.kind == BYTES:
                offsets = np.frombuffer(buffers[1], np.int32, len(array) + 1, 4 * array.offset)
                self.size += int(offsets[-1]) - int(offsets[0])
                if buffers[2] is not None:
                    self.bytes[place] = buffers[2].address
                    self.ends[place] = buffers[2].address + buffers[2].size


class _Order:
    """Places of rows: for each row that is passed on, its segment, which is a batch, and its row
    in it."""

    def __init__(self, batches: Sequence[pa.RecordBatch]) -> None:
        self.starts = np.cumsum([0, *map(len, batches)], dtype=np.int64)
        self.count = int(self.starts[-1])
        self.segments = np.empty(self.count, np.uint16)
        self.rows = np.empty(self.count, np.int32)

    def gathered(self, batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
        """Return the rows in this order."""
        schema = batches[0].schema
        columns = [
            self._column([batch.column(place) for batch in batches]) for place in range(len(schema))
        ]
        return pa.RecordBatch.from_arrays(columns, schema=schema)

    def _column(self, arrays: Sequence[pa.Array]) -> pa.Array:
        if _kind(arrays[0].type) is None:
            places = pa.array(self.starts[self.segments] + self.rows)
            taken = pa.chunked_array(arrays).take(places)
            return taken.combine_chunks() if taken.num_chunks != 1 else taken.chunk(0)
        column = _Column(arrays)
        validity, nulls = self._validity(arrays)
        buffers = self._strings(column) if column.kind == BYTES else [self._numbers(column)]
        return pa.Array.from_buffers(column.type, self.count, [validity, *buffers], nulls)

    def _validity(self, arrays: Sequence[pa.Array]) -> tuple[pa.Buffer | None, int]:
        nulls = [array.null_count for array in arrays]
        if not any(nulls):
            return None, 0
        bits = np.zeros(len(arrays), np.int64)
        for place, array in enumerate(arrays):
            if nulls[place]:
                bits[place] = array.buffers()[0].address
        skip = np.array([array.offset for array in arrays], np.int64)
        out = pa.allocate_buffer((self.count + 7) // 8)
        gather_bits(bits, skip, self.segments, self.rows, np.frombuffer(out, np.uint8))
        return out, sum(nulls)

    def _numbers(self, column: _Column) -> pa.Buffer:
        if column.kind == INT64:
            out = pa.allocate_buffer(8 * self.count)
            words = np.frombuffer(out, np.uint64)
            gather_64(column.values, self.segments, self.rows, words)
        else:
            out = pa.allocate_buffer(4 * self.count)
            numbers = np.frombuffer(out, np.int32)
            gather_32(column.values, self.segments, self.rows, numbers)
        return out

    def _strings(self, column: _Column) -> list[pa.Buffer]:
        offsets = pa.allocate_buffer(4 * (self.count + 1))
        data = pa.allocate_buffer(column.size + SLACK)
        gather_bytes(
            column.values,
            column.bytes,
            column.ends,
            self.segments,
            self.rows,
            np.frombuffer(offsets, np.int32),
            data.address,
            data.size,
        )
        return [offsets, data.slice(0, column.size)]


def _kind(type_: pa.DataType) -> int | None:
    """Return how the kernels see values of a type; None: they do not."""
    if pa.types.is_string(type_) or pa.types.is_binary(type_):
        return BYTES
    if pa.types.is_primitive(type_) and type_.bit_width in (32, 64):
        return INT64 if type_.bit_width == 64 else INT32
    return None
