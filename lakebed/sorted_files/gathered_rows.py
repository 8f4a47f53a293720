"""Rows of many Arrow batches copied into one, in a given order, by `lakebed.kernels`.

Columns of text, bytes, and numbers of four or eight bytes are copied once, from the batches as
they were read into the one passed on; columns of other types by Arrow's `take`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakebed.kernels.gathering import SLACK, gather_32, gather_64, gather_bits, gather_bytes
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
    """Yield rows of batches in an order. spans: the first row of each batch that is wanted, and
    the row behind the last; segments, rows: of each row its batch and its place in it."""
    if sum(batch.nbytes for batch in batches) > BYTES_MAX:
        starts = np.cumsum([0, *map(len, batches)], dtype=np.int64)
        places = pa.array(starts[segments] + rows)
        yield from pa.Table.from_batches(batches).take(places).to_batches()
        return
    schema = batches[0].schema
    order = _Order(batches, spans, segments, rows)
    columns = [
        order.column([batch.column(place) for batch in batches]) for place in range(len(schema))
    ]
    yield pa.RecordBatch.from_arrays(columns, schema=schema)


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
    """Return where the validity of each array is, 0 where none is null, and the place of its first
    row's bit."""
    bits = np.zeros(len(arrays), np.int64)
    for place, array in enumerate(arrays):
        if array.null_count:
            bits[place] = array.buffers()[0].address
    return bits, np.array([array.offset for array in arrays], np.int64)


def kept(batch: pa.RecordBatch, mask: pa.BooleanArray) -> pa.RecordBatch:
    """Return the rows of a batch for which a mask without nulls is true."""
    _, bits = mask.buffers()
    flags = np.unpackbits(np.frombuffer(bits, np.uint8), bitorder="little")
    rows = np.flatnonzero(flags[mask.offset : mask.offset + len(mask)]).astype(np.int32)
    segments = np.zeros(len(rows), np.uint16)
    (found,) = gathered([batch], [(0, len(batch))], segments, rows)
    return found


class _Order:
    """For each row that is passed on, its batch and its place in it."""

    def __init__(
        self,
        batches: Sequence[pa.RecordBatch],
        spans: Sequence[Span],
        segments: Segments,
        rows: Rows,
    ) -> None:
        self._lengths = [len(batch) for batch in batches]
        self._spans = spans
        self._segments = segments
        self._rows = rows
        self._count = len(rows)

    def column(self, arrays: Sequence[pa.Array]) -> pa.Array:
        """Return a column's values in this order."""
        kind = kind_of(arrays[0].type)
        if kind is None:
            return self._taken(arrays)
        found = [addresses_of(array, kind) for array in arrays]
        values = np.array([values for values, _ in found], np.int64)
        validity, nulls = self._validity(arrays)
        if kind == BYTES:
            bytes_ = np.array([bytes_ for _, bytes_ in found], np.int64)
            buffers = self._strings(arrays, values, bytes_)
        else:
            buffers = [self._numbers(kind, values)]
        return pa.Array.from_buffers(arrays[0].type, self._count, [validity, *buffers], nulls)

    def _taken(self, arrays: Sequence[pa.Array]) -> pa.Array:
        starts = np.cumsum([0, *self._lengths], dtype=np.int64)
        places = pa.array(starts[self._segments] + self._rows)
        taken = pa.chunked_array(arrays).take(places)
        return taken.combine_chunks() if taken.num_chunks != 1 else taken.chunk(0)

    def _validity(self, arrays: Sequence[pa.Array]) -> tuple[pa.Buffer | None, int]:
        bits, skip = validity_of(arrays)
        if not bits.any():
            return None, 0
        out = pa.allocate_buffer((self._count + 7) // 8)
        valid = gather_bits(bits, skip, self._segments, self._rows, np.frombuffer(out, np.uint8))
        return out, self._count - valid

    def _numbers(self, kind: int, values: Addresses) -> pa.Buffer:
        if kind == INT64:
            out = pa.allocate_buffer(8 * self._count)
            gather_64(values, self._segments, self._rows, np.frombuffer(out, np.uint64))
        else:
            out = pa.allocate_buffer(4 * self._count)
            gather_32(values, self._segments, self._rows, np.frombuffer(out, np.int32))
        return out

    def _strings(
        self, arrays: Sequence[pa.Array], values: Addresses, bytes_: Addresses
    ) -> list[pa.Buffer]:
        ends = np.zeros(len(arrays), np.int64)
        size = 0
        for place, (array, (first, last)) in enumerate(zip(arrays, self._spans, strict=True)):
            _, offsets, data = array.buffers()
            numbers = np.frombuffer(offsets, np.int32, len(array) + 1, 4 * array.offset)
            size += int(numbers[last]) - int(numbers[first])
            if data is not None:
                ends[place] = data.address + data.size
        out = pa.allocate_buffer(4 * (self._count + 1))
        data = pa.allocate_buffer(size + SLACK)
        gather_bytes(
            values,
            bytes_,
            ends,
            self._segments,
            self._rows,
            np.frombuffer(out, np.int32),
            data.address,
            data.size,
        )
        return [out, data.slice(0, size)]
