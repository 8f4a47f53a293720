"""Rows of many Arrow batches copied into one, in a given order, by `lakebed.kernels`.

Columns of text, bytes, and numbers of four or eight bytes are copied once, from the batches as
they were read into the one passed on; columns of other types by Arrow's `take`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakebed.kernels.gathering import (
    SLACK,
    gather_32,
    gather_64,
    gather_bits,
    gather_bytes,
    rows_where,
    string_bytes,
)
from lakebed.kernels.keys import BYTES, INT32, INT64
from lakebed.kernels.merging import Rows, Segments

SEGMENTS_MAX = 1 << 16
BYTES_MAX = (1 << 31) - 1
"""Offsets have 32 bits, numbers of segments 16: more bytes at once are for Arrow's `take`."""

Addresses = npt.NDArray[np.int64]
Span = tuple[int, int]


def gathered(
    batches: Sequence[pa.RecordBatch], spans: Sequence[Span], segments: Segments, rows: Rows
) -> Iterator[pa.RecordBatch]:
    """Yield rows of batches in an order.

    spans: the first row of each batch that is wanted, and the row behind the last.
    segments, rows: of each row its batch and its index in it.
    """
    if sum(batch.nbytes for batch in batches) > BYTES_MAX:
        starts = np.cumsum([0, *map(len, batches)], dtype=np.int64)
        indices = pa.array(starts[segments] + rows)
        yield from pa.Table.from_batches(batches).take(indices).to_batches()
        return
    columns = [
        column.gathered(segments, rows, column.size_between(spans))
        for column in columns_of(batches)
    ]
    yield pa.RecordBatch.from_arrays(columns, schema=batches[0].schema)


def columns_of(batches: Sequence[pa.RecordBatch]) -> Iterator[GatheredColumn]:
    """Yield the columns of batches, at least one."""
    for index in range(batches[0].num_columns):
        yield GatheredColumn([batch.column(index) for batch in batches])


def kind_of(type_: pa.DataType) -> int | None:
    """Return how the kernels see values of a type; None: they do not."""
    if pa.types.is_string(type_) or pa.types.is_binary(type_):
        return BYTES
    if pa.types.is_primitive(type_) and type_.bit_width in (32, 64):
        return INT64 if type_.bit_width == 64 else INT32
    return None


def addresses_of(array: pa.Array, kind: int) -> tuple[int, int]:
    """Return where the values of an array are, and where the bytes of its strings."""
    buffers = array.buffers()
    values = buffers[1].address + (8 if kind == INT64 else 4) * array.offset
    return values, buffers[2].address if kind == BYTES and buffers[2] is not None else 0


def validity_of(arrays: Sequence[pa.Array]) -> tuple[Addresses, Addresses]:
    """Return where the validity of each array is, 0 where none is null, and the index of its first
    row's bit."""
    bits = np.zeros(len(arrays), np.int64)
    for index, array in enumerate(arrays):
        if array.null_count:
            bits[index] = array.buffers()[0].address
    return bits, np.array([array.offset for array in arrays], np.int64)


def kept(batch: pa.RecordBatch, mask: pa.BooleanArray) -> pa.RecordBatch:
    """Return the rows of a batch for which a mask without nulls is true."""
    rows = np.empty(len(mask), np.int32)
    rows = rows[: rows_where(mask.buffers()[1].address, mask.offset, len(mask), rows)]
    segments = np.zeros(len(rows), np.uint16)
    (found,) = gathered([batch], [(0, len(batch))], segments, rows)
    return found


def _offsets(array: pa.Array) -> Rows:
    return np.frombuffer(array.buffers()[1], np.int32, len(array) + 1, 4 * array.offset)


class GatheredColumn:
    """The values of a column, batch by batch, for rows to be copied from."""

    def __init__(self, arrays: Sequence[pa.Array]) -> None:
        self._arrays = arrays  # whose values are read at their addresses
        self.type = arrays[0].type
        self.kind = kind_of(self.type)
        if self.kind is None:
            return
        found = np.array([addresses_of(array, self.kind) for array in arrays], np.int64)
        self._values, self._bytes = np.ascontiguousarray(found.T)
        self._bits, self._skip = validity_of(arrays)
        self._ends = np.zeros(len(arrays), np.int64)
        if self.kind == BYTES:
            for index, array in enumerate(arrays):
                data = array.buffers()[2]
                self._ends[index] = 0 if data is None else data.address + data.size

    def size(self, segments: Segments, rows: Rows) -> int:
        """Return how many bytes the strings of some rows have; of numbers, the numbers."""
        if self.kind == BYTES:
            return string_bytes(self._values, segments, rows)
        return (8 if self.kind == INT64 else 4) * len(rows)

    def size_between(self, spans: Sequence[Span]) -> int:
        """Return how many bytes the strings of some rows of each batch have; 0 for numbers."""
        if self.kind != BYTES:
            return 0
        ends = zip(map(_offsets, self._arrays), spans, strict=True)
        return sum(int(offsets[last]) - int(offsets[first]) for offsets, (first, last) in ends)

    def widest(self) -> int:
        """Return how many bytes the longest string has; of numbers, a number."""
        if self.kind != BYTES:
            return 8 if self.kind == INT64 else 4
        return max(int(np.diff(_offsets(array)).max(initial=0)) for array in self._arrays)

    def gathered(self, segments: Segments, rows: Rows, size: int | None = None) -> pa.Array:
        """Return the values of rows in an order. size: at least as many bytes as strings have;
        None: they are counted."""
        if self.kind is None:
            return self._taken(segments, rows)
        size = self.size(segments, rows) if size is None else size
        validity, nulls = self._validity(segments, rows)
        if self.kind == BYTES:
            buffers = self._strings(segments, rows, size)
        else:
            buffers = [self._numbers(segments, rows)]
        return pa.Array.from_buffers(self.type, len(rows), [validity, *buffers], nulls)

    def _taken(self, segments: Segments, rows: Rows) -> pa.Array:
        starts = np.cumsum([0, *map(len, self._arrays)], dtype=np.int64)
        indices = pa.array(starts[segments] + rows)
        taken = pa.chunked_array(self._arrays).take(indices)
        return taken.combine_chunks() if taken.num_chunks != 1 else taken.chunk(0)

    def _validity(self, segments: Segments, rows: Rows) -> tuple[pa.Buffer | None, int]:
        if not self._bits.any():
            return None, 0
        out = pa.allocate_buffer((len(rows) + 7) // 8)
        valid = gather_bits(self._bits, self._skip, segments, rows, np.frombuffer(out, np.uint8))
        return out, len(rows) - valid

    def _numbers(self, segments: Segments, rows: Rows) -> pa.Buffer:
        if self.kind == INT64:
            out = pa.allocate_buffer(8 * len(rows))
            gather_64(self._values, segments, rows, np.frombuffer(out, np.uint64))
        else:
            out = pa.allocate_buffer(4 * len(rows))
            gather_32(self._values, segments, rows, np.frombuffer(out, np.int32))
        return out

    def _strings(self, segments: Segments, rows: Rows, size: int) -> list[pa.Buffer]:
        out = pa.allocate_buffer(4 * (len(rows) + 1))
        data = pa.allocate_buffer(size + SLACK)
        gather_bytes(
            self._values,
            self._bytes,
            self._ends,
            segments,
            rows,
            np.frombuffer(out, np.int32),
            data.address,
            data.size,
        )
        return [out, data.slice(0, size)]
