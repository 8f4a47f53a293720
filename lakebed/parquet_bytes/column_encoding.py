"""Column chunks encoded by kernels: flat columns of numbers, text and bytes.

A page is a header in one form, then what the header says, compressed or not. The form: data page,
version 1; fields 1 type, 2 and 3 sizes, 4 CRC-32 of the bytes behind the header, 5 values,
encoding, RLE and RLE for the levels; nothing else, so that whoever knows the sizes, the CRC-32,
the number of values and the encoding knows every byte of it. pyarrow writes it the same.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence

import anycrc
import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import zstandard

from lakebed.kernels import encoding as kernels
from lakebed.kernels.packing import PAGE_ROOM
from lakebed.parquet_bytes.encoded import EncodedChunk, listed
from lakebed.parquet_bytes.footer import Codec, Encoding, Physical
from lakebed.parquet_bytes.page_index import ASCENDING, DESCENDING, UNORDERED, Pages
from lakebed.parquet_bytes.thrift import (
    BINARY,
    BOOL,
    I32,
    I64,
    STRUCT,
    Struct,
    encode_struct,
    natural,
    zigzag,
)

_CRC32 = anycrc.Model("CRC32")
_DATA_PAGE = 0
_RLE = Encoding.RLE
_SLACK = 64
_STRINGS = (Encoding.DELTA_LENGTH_BYTE_ARRAY, Encoding.DELTA_BYTE_ARRAY)

Addresses = npt.NDArray[np.int64]


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
    """Encodes chunks, one after the other; keeps its memory for the next. Not for two threads."""

    def __init__(self, *, zstd_level: int) -> None:
        self._zstd = zstandard.ZstdCompressor(level=zstd_level)
        self._room = np.empty(0, np.uint8)

    def encode(
        self, column: Column, codec: Codec, arrays: Sequence[pa.Array], page_rows: int
    ) -> EncodedChunk:
        """Return a chunk of these values, at least one. page_rows: of every page but the last."""
        segments = _Segments(column, [array for array in arrays if len(array)])
        encoded = _Encoded(column, codec, segments.rows, page_rows)
        if len(self._room) < (room := segments.room(encoded.pages)):
            self._room = np.empty(room, np.uint8)
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
            self._room.ctypes.data,
            len(self._room),
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
            self._room.ctypes.data,
            len(self._room),
            encoded.ends,
            encoded.kept,
            encoded.sizes,
            encoded.bounds,
        )

    def _chunk(self, encoded: _Encoded) -> EncodedChunk:
        """Compress pages and put headers before them."""
        column, rows = encoded.column, encoded.page_rows
        payloads = memoryview(self._room.data)
        pieces: list[bytes | memoryview] = []
        sizes, offsets = [], []
        at = begin = raw_size = 0
        first_rows = range(0, encoded.rows, rows)
        for row, end in zip(first_rows, encoded.ends.tolist(), strict=True):
            payload = payloads[begin:end]
            is_plain = encoded.codec == Codec.UNCOMPRESSED
            stored = bytes(payload) if is_plain else self._zstd.compress(payload)
            values = min(rows, encoded.rows - row)
            header = page_header(end - begin, stored, values, column.encoding)
            pieces += (header, stored)
            offsets.append(at)
            sizes.append(len(header) + len(stored))
            raw_size += len(header) + end - begin
            at += sizes[-1]
            begin = end
        is_text = column.physical == Physical.BYTE_ARRAY
        bounds = _bounds(encoded) if column.bounds != kernels.UNBOUNDED else None
        return EncodedChunk(
            metadata=_metadata(encoded, raw_size, at, bounds),
            pieces=pieces,
            size=at,
            pages=Pages(tuple(offsets), tuple(sizes), tuple(first_rows)),
            byte_counts=tuple(encoded.sizes.tolist()) if is_text else None,
            bounds=None if bounds is None else _column_index(bounds),
        )


def page_header(raw_size: int, stored: bytes, values: int, encoding: Encoding) -> bytes:
    """Return the header of a data page. raw_size: of its payload before compression."""
    checksum: int = _CRC32.calc(stored)
    signed = checksum - (1 << 32) if checksum >> 31 else checksum
    return b"".join(
        (
            b"\x15\x00\x15",
            natural(raw_size),
            b"\x15",
            natural(len(stored)),
            b"\x15",
            zigzag(signed),
            _header_end(values, encoding),
        )
    )


@functools.lru_cache(maxsize=1024)
def _header_end(values: int, encoding: Encoding) -> bytes:
    head = Struct({1: (I32, values), 2: (I32, encoding), 3: (I32, _RLE), 4: (I32, _RLE)})
    return b"\x1c" + encode_struct(head) + b"\x00"


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
    """Least and greatest values of pages, which have no nulls, and how they go on."""

    mins: list[bytes]
    maxs: list[bytes]
    order: int


def _bounds(encoded: _Encoded) -> _Bounds:
    if encoded.column.physical == Physical.BYTE_ARRAY:
        found: list[list[int]] = encoded.bounds.reshape(-1, 4).tolist()
        texts = [(ctypes.string_at(a, n), ctypes.string_at(b, m)) for a, n, b, m in found]
        return _Bounds([a for a, _ in texts], [b for _, b in texts], _order(texts))
    pairs: list[list[int]] = encoded.bounds[: 2 * encoded.pages].reshape(-1, 2).tolist()
    width = 4 if encoded.column.physical == Physical.INT32 else 8
    mins, maxs = (
        [pair[which].to_bytes(width, "little", signed=True) for pair in pairs] for which in (0, 1)
    )
    return _Bounds(mins, maxs, _order(pairs))


def _order(pairs: Sequence[Sequence[object]]) -> int:
    """Return how minima and maxima both go from page to page."""
    mins, maxs = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    if _ascend(mins) and _ascend(maxs):
        return ASCENDING
    return DESCENDING if _ascend(mins[::-1]) and _ascend(maxs[::-1]) else UNORDERED


def _ascend(values: Sequence[object]) -> bool:
    return sorted(values) == list(values)  # type: ignore[type-var]  # numbers, or strings


def _column_index(bounds: _Bounds) -> bytes:
    pages = len(bounds.mins)
    return encode_struct(
        Struct(
            {
                1: listed(BOOL, [False] * pages),
                2: listed(BINARY, bounds.mins),
                3: listed(BINARY, bounds.maxs),
                4: (I32, bounds.order),
                5: listed(I64, [0] * pages),
            }
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
    stats = Struct({1: (I32, _DATA_PAGE), 2: (I32, column.encoding), 3: (I32, encoded.pages)})
    fields[13] = listed(STRUCT, [stats])
    if column.physical == Physical.BYTE_ARRAY or column.nullable:
        fields[16] = (STRUCT, _size_statistics(encoded))
    return fields


def _statistics(column: Column, bounds: _Bounds) -> Struct:
    mins, maxs = bounds.mins, bounds.maxs
    if column.physical == Physical.BYTE_ARRAY:
        least, greatest = min(mins), max(maxs)
        fields = Struct()
    else:
        least, greatest = min(mins, key=_signed), max(maxs, key=_signed)
        # As written before there was an order for each type: where it is that of the numbers.
        fields = Struct({1: (BINARY, greatest), 2: (BINARY, least)})
    fields[3] = (I64, 0)
    fields[5], fields[6] = (BINARY, greatest), (BINARY, least)
    fields[7], fields[8] = (BOOL, True), (BOOL, True)
    return fields


def _signed(raw: bytes) -> int:
    return int.from_bytes(raw, "little", signed=True)


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
