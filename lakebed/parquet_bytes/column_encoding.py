"""Column chunks encoded by kernels: flat columns of numbers, text and bytes.

One call of a kernel writes the payloads of a chunk's pages, one makes pages of them, one writes
their bounds. A page's header has these fields and no others: 1 type, 2 and 3 sizes, 4 CRC-32 of
the bytes behind the header, 5 values, encoding, RLE and RLE for the levels; so whoever knows the
sizes, the CRC-32, the number of values and the encoding knows every byte of it. pyarrow writes it
the same.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import msgspec
import numpy as np
import pyarrow as pa

from lakebed.kernels import encoding as kernels
from lakebed.kernels.arrays import address_of
from lakebed.kernels.packing import PAGE_ROOM
from lakebed.kernels.page_writing import DATA, HEADER_ROOM, write_bounds, write_pages
from lakebed.kernels.zstd import room_for, zstd
from lakebed.parquet_bytes.encoded import EncodedChunk, EncodedPages, listed
from lakebed.parquet_bytes.footer import Codec, Encoding, Physical
from lakebed.parquet_bytes.thrift import (
    BINARY,
    BOOL,
    I32,
    I64,
    STRUCT,
    Struct,
    list_head,
)
from lakebed.parquet_bytes.varints import Bytes, Numbers

_STRINGS = (Encoding.DELTA_LENGTH_BYTE_ARRAY, Encoding.DELTA_BYTE_ARRAY)
_SLACK = 64
"""Bytes behind what a kernel writes, of which it may write some, too."""
_BLOCK_BYTES = 4 * 1024 * 1024


class Column(msgspec.Struct, frozen=True):
    """How a flat column is encoded. bounds: whether its pages' bounds are told, and are their first
    and last value."""

    name: str
    type: pa.DataType
    nullable: bool
    encoding: Encoding
    bounds: int = kernels.UNBOUNDED

    @property
    def physical(self) -> Physical:
        """Return how Parquet stores it."""
        if self.encoding in _STRINGS:
            return Physical.BYTE_ARRAY
        if pa.types.is_floating(self.type):
            return Physical.FLOAT if self.type.bit_width == 32 else Physical.DOUBLE
        return Physical.INT64 if self.type.bit_width == 64 else Physical.INT32


def can_encode(type_: pa.DataType, encoding: Encoding) -> bool:
    """Whether kernels write this type in this encoding."""
    if pa.types.is_string(type_) or pa.types.is_binary(type_):
        return encoding in _STRINGS
    if pa.types.is_floating(type_) and type_.bit_width >= 32:
        return encoding == Encoding.PLAIN
    whole = pa.types.is_integer(type_) or pa.types.is_temporal(type_)
    return bool(whole and encoding == Encoding.DELTA_BINARY_PACKED)


class ColumnEncoder:
    """Encodes chunks, one after the other, into memory that it uses again. Not for two threads."""

    def __init__(self, *, zstd_level: int) -> None:
        self._level = zstd_level
        self._payloads = np.empty(0, np.uint8)
        self._written = Spool()

    def forget(self) -> None:
        """Let the next chunks take the place of those that were returned."""
        self._written.clear()

    def encode(
        self, column: Column, codec: Codec, arrays: Sequence[pa.Array], page_rows: int
    ) -> EncodedChunk:
        """Return a chunk of these values, at least one. page_rows: of every page but the last."""
        segments = _Segments(column, [array for array in arrays if len(array)])
        encoded = _Encoded(column, codec, segments.rows, page_rows)
        if len(self._payloads) < (room := segments.room(encoded.pages)):
            self._payloads = np.empty(room, np.uint8)
        if column.physical == Physical.BYTE_ARRAY:
            self._encode_strings(segments, encoded)
        else:
            self._encode_numbers(segments, encoded)
        return self._chunk(encoded)

    def _encode_numbers(self, segments: _Segments, encoded: _Encoded) -> None:
        column = encoded.column
        is_plain = column.encoding == Encoding.PLAIN
        kernels.encode_numbers(
            kernels.PLAIN if is_plain else kernels.DELTAS,
            segments.width,
            int(pa.types.is_unsigned_integer(column.type)),
            int(column.nullable),
            column.bounds,
            encoded.page_rows,
            segments.values,
            segments.bits,
            segments.skip,
            segments.firsts,
            address_of(self._payloads),
            len(self._payloads),
            encoded.ends,
            encoded.kept,
            encoded.bounds,
        )

    def _encode_strings(self, segments: _Segments, encoded: _Encoded) -> None:
        column = encoded.column
        has_prefixes = column.encoding == Encoding.DELTA_BYTE_ARRAY
        kernels.encode_strings(
            kernels.PREFIXES if has_prefixes else kernels.LENGTHS,
            int(column.nullable),
            column.bounds,
            encoded.page_rows,
            segments.values,
            segments.bytes,
            segments.bits,
            segments.skip,
            segments.firsts,
            address_of(self._payloads),
            len(self._payloads),
            encoded.ends,
            encoded.kept,
            encoded.sizes,
            encoded.bounds,
        )

    def _chunk(self, encoded: _Encoded) -> EncodedChunk:
        """Compress pages and put headers before them."""
        column, ends = encoded.column, encoded.ends
        raw_sizes = np.diff(ends, prepend=0)
        is_compressed = encoded.codec != Codec.UNCOMPRESSED
        most = int(ends[-1])
        if is_compressed:
            most = sum(map(room_for, raw_sizes.tolist()))
        room = most + HEADER_ROOM * encoded.pages + _SLACK
        to = self._written.room(room)
        offsets, sizes, headers, checksums = np.empty((4, encoded.pages), np.int64)
        functions = zstd()
        size = write_pages(
            functions.compress if is_compressed else 0,
            functions.compressor(self._level) if is_compressed else 0,
            DATA,
            column.encoding,
            encoded.page_rows,
            encoded.rows - (encoded.pages - 1) * encoded.page_rows,
            address_of(self._payloads),
            ends,
            to,
            room,
            offsets,
            sizes,
            headers,
            checksums,
        )
        assert size > 0, "there is room for what zstd writes"
        is_text = column.physical == Physical.BYTE_ARRAY
        bounds = _bounds(encoded) if column.bounds != kernels.UNBOUNDED else None
        return EncodedChunk(
            metadata=_metadata(encoded, int(headers.sum() + ends[-1]), size, bounds),
            raw=self._written.keep(size),
            pages=EncodedPages(
                offsets,
                sizes,
                np.arange(0, encoded.rows, encoded.page_rows),
                encoded.sizes if is_text else None,
            ),
            checksums=checksums,
            bounds=None if bounds is None else _column_index(bounds),
        )


class Spool:
    """Memory to write into, piece behind piece, and to be used again."""

    def __init__(self) -> None:
        self._blocks: list[Bytes] = []
        self._block = 0
        self._at = 0

    def room(self, size: int) -> int:
        """Return the address of so many bytes."""
        while self._block < len(self._blocks):
            block = self._blocks[self._block]
            if len(block) - self._at >= size:
                return address_of(block) + self._at
            self._block, self._at = self._block + 1, 0
        self._blocks.append(np.empty(max(size, _BLOCK_BYTES), np.uint8))
        return address_of(self._blocks[-1])

    def keep(self, size: int) -> memoryview:
        """Return what was written where there was room: so many bytes."""
        begin, self._at = self._at, self._at + size
        return self._blocks[self._block].data[begin : self._at]

    def clear(self) -> None:
        """Let everything be written over."""
        self._block = self._at = 0


class _Segments:
    """Where a column's values are, array by array, as `kernels.encoding` takes them."""

    def __init__(self, column: Column, arrays: Sequence[pa.Array]) -> None:
        self.arrays = arrays
        count = len(arrays)
        self.values = np.zeros(count, np.int64)
        self.bytes = np.zeros(count, np.int64)
        self.bits = np.zeros(count, np.int64)
        self.skip = np.array([array.offset for array in arrays], np.int64)
        self.firsts = np.cumsum([0, *map(len, arrays)], dtype=np.int64)
        self.rows = int(self.firsts[-1])
        self.is_text = column.physical == Physical.BYTE_ARRAY
        self.width = 4 if self.is_text else column.type.bit_width // 8
        self._bytes_count = 0
        for place, array in enumerate(arrays):
            validity, values, *texts = array.buffers()
            self.values[place] = values.address + self.width * array.offset
            if validity is not None and array.null_count:
                self.bits[place] = validity.address
            if self.is_text:
                offsets = np.frombuffer(values, np.int32, len(array) + 1, 4 * array.offset)
                self._bytes_count += int(offsets[-1]) - int(offsets[0])
                self.bytes[place] = texts[0].address if texts[0] is not None else 0

    def room(self, pages: int) -> int:
        """Return how many bytes their pages may take, whatever the values are."""
        lists = 2 if self.is_text else 1
        levels = self.rows // 8 + 16 * pages
        return self._bytes_count + lists * (9 * self.rows + PAGE_ROOM * pages) + levels + _SLACK


class _Encoded:
    """What a kernel tells of each page of a chunk."""

    def __init__(self, column: Column, codec: Codec, rows: int, page_rows: int) -> None:
        self.column = column
        self.codec = codec
        self.rows = rows
        self.page_rows = page_rows
        self.pages = -(-rows // page_rows)
        self.ends = np.zeros(self.pages, np.int64)
        self.kept = np.zeros(self.pages, np.int64)
        self.sizes = np.zeros(self.pages, np.int64)
        self.bounds = np.zeros(4 * self.pages, np.int64)


class _Bounds(msgspec.Struct, frozen=True):
    """Of a chunk without nulls: of its pages the least and greatest values, as they are stored, how
    they go on, and the least and greatest of all."""

    mins: bytes
    maxs: bytes
    order: int
    least: bytes
    greatest: bytes
    pages: int


def _bounds(encoded: _Encoded) -> _Bounds:
    physical, pages = encoded.column.physical, encoded.pages
    is_text = physical == Physical.BYTE_ARRAY
    width = 0 if is_text else 4 if physical == Physical.INT32 else 8
    found = encoded.bounds if is_text else encoded.bounds[: 2 * pages]
    lengths = int(found[1::2].sum()) if is_text else 2 * width * pages
    out = np.empty(lengths + 20 * pages + _SLACK, np.uint8)
    facts = np.zeros(5, np.int64)
    write_bounds(width, found, address_of(out), facts)
    middle, end, order, least, greatest = facts.tolist()
    raw = out.tobytes()
    return _Bounds(
        mins=raw[:middle],
        maxs=raw[middle:end],
        order=order,
        least=_bound(found.reshape(pages, -1)[least], 0, width),
        greatest=_bound(found.reshape(pages, -1)[greatest], 1, width),
        pages=pages,
    )


def _bound(page: Numbers, which: int, width: int) -> bytes:
    """Return a page's least value, or its greatest, as it is stored. width: 0 for strings."""
    if width:
        return int(page[which]).to_bytes(width, "little", signed=True)
    return ctypes.string_at(int(page[2 * which]), int(page[2 * which + 1]))


def _column_index(bounds: _Bounds) -> bytes:
    pages = bounds.pages
    return b"".join(
        (
            list_head(pages, BOOL),
            b"\x02" * pages,  # not all are null
            list_head(pages, BINARY),
            bounds.mins,
            list_head(pages, BINARY),
            bounds.maxs,
            bytes((0x15, 2 * bounds.order)),
            list_head(pages, I64),
            bytes(pages + 1),  # no value is null; the struct ends
        )
    )


def _metadata(encoded: _Encoded, raw_size: int, size: int, bounds: _Bounds | None) -> Struct:
    column = encoded.column
    fields = Struct(
        {
            1: (I32, column.physical),
            2: listed(I32, [Encoding.RLE, column.encoding]),
            3: listed(BINARY, [column.name.encode()]),
            4: (I32, encoded.codec),
            5: (I64, encoded.rows),
            6: (I64, raw_size),
            7: (I64, size),
            9: (I64, 0),
        }
    )
    if bounds is not None:
        fields[12] = (STRUCT, _statistics(column, bounds))
    stats = Struct({1: (I32, DATA), 2: (I32, column.encoding), 3: (I32, encoded.pages)})
    fields[13] = listed(STRUCT, [stats])
    if column.physical == Physical.BYTE_ARRAY or column.nullable:
        fields[16] = (STRUCT, _size_statistics(encoded))
    return fields


def _statistics(column: Column, bounds: _Bounds) -> Struct:
    least, greatest = bounds.least, bounds.greatest
    fields = Struct()
    if column.physical != Physical.BYTE_ARRAY:
        # As written before there was an order for each type: where it is that of the numbers.
        fields |= {1: (BINARY, greatest), 2: (BINARY, least)}
    fields[3] = (I64, 0)
    fields[5], fields[6] = (BINARY, greatest), (BINARY, least)
    fields[7], fields[8] = (BOOL, True), (BOOL, True)
    return fields


def _size_statistics(encoded: _Encoded) -> Struct:
    """Return bytes of strings, and how many values have each level."""
    column = encoded.column
    fields = Struct()
    if column.physical == Physical.BYTE_ARRAY:
        fields[1] = (I64, int(encoded.sizes.sum()))
    kept = int(encoded.kept.sum())
    fields[2] = listed(I64, [])
    fields[3] = listed(I64, [encoded.rows - kept, kept] if column.nullable else [])
    return fields
