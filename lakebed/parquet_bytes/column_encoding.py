"""Column chunks encoded by kernels: flat columns of numbers, text and bytes.

One call of a kernel writes the payloads of a chunk's pages, one makes pages of them, one writes
their bounds. A page's header has these fields and no others: 1 type, 2 and 3 sizes, 4 CRC-32 of
the bytes behind the header, 5 values, encoding, RLE and RLE for the levels; so whoever knows the
sizes, the CRC-32, the number of values and the encoding knows every byte of it. pyarrow writes it
the same.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from lakebed.kernels import encoding as kernels
from lakebed.kernels.dictionaries import SLOTS, WORDS, encode_repeated
from lakebed.kernels.encoding_strings import encode_strings
from lakebed.kernels.packing import PAGE_ROOM
from lakebed.kernels.page_writing import HEADER_ROOM, write_pages
from lakebed.kernels.toolchain.arrays import address_of
from lakebed.kernels.zstd import room_for, zstd
from lakebed.parquet_bytes.chunk_metadata import (
    SLACK,
    STRINGS,
    Column,
    EncodedColumn,
    bounds_of,
    column_index,
    metadata_of,
)
from lakebed.parquet_bytes.encoded import EncodedChunk
from lakebed.parquet_bytes.footer import Codec, Encoding, Physical
from lakebed.parquet_bytes.page_index import EncodedPages
from lakebed.parquet_bytes.spool import EncoderMemory


def can_encode(type_: pa.DataType, encoding: Encoding) -> bool:
    """Whether kernels write this type in this encoding."""
    if pa.types.is_string(type_) or pa.types.is_binary(type_):
        return encoding in STRINGS
    if pa.types.is_floating(type_) and type_.bit_width >= 32:
        return encoding == Encoding.PLAIN
    whole = pa.types.is_integer(type_) or pa.types.is_temporal(type_)
    return bool(whole and encoding == Encoding.DELTA_BINARY_PACKED)


class ColumnEncoder:
    """Encodes chunks, one after the other, into memory that it uses again. Not for two threads."""

    def __init__(self, *, zstd_level: int) -> None:
        self._level = zstd_level
        self._memory = EncoderMemory.of_idle()

    def forget(self) -> None:
        """Let the next chunks take the place of those that were returned."""
        self._memory.written.clear()

    def close(self) -> None:
        """Give memory back: nothing of what was returned is needed any more."""
        self._memory.give_back()
        self._memory = EncoderMemory()

    def encode(
        self, column: Column, codec: Codec, arrays: Sequence[pa.Array], page_rows: int
    ) -> EncodedChunk | None:
        """Return a chunk of these values, at least one. page_rows: of every page but the last.

        None: a dictionary would be too large.
        """
        segments = _Segments(column, [array for array in arrays if len(array)])
        encoded = EncodedColumn(column, codec, segments.rows, page_rows)
        if len(self._memory.payloads) < (room := segments.room(encoded.pages)):
            self._memory.payloads = np.empty(room, np.uint8)
        if column.encoding == Encoding.RLE_DICTIONARY:
            encoded.words = self._encode_repeated(segments, encoded)
            if encoded.words < 0:
                return None
        elif column.physical == Physical.BYTE_ARRAY:
            self._encode_strings(segments, encoded)
        else:
            self._encode_numbers(segments, encoded)
        return self._chunk(encoded)

    def _encode_repeated(self, segments: _Segments, encoded: EncodedColumn) -> int:
        return encode_repeated(
            int(encoded.column.nullable),
            encoded.page_rows,
            segments.values,
            segments.bytes,
            segments.bits,
            segments.skip,
            segments.firsts,
            np.zeros(SLOTS, np.int64),
            np.zeros(WORDS, np.int64),
            address_of(self._memory.payloads),
            len(self._memory.payloads),
            encoded.ends,
            encoded.kept,
            encoded.sizes,
        )

    def _encode_numbers(self, segments: _Segments, encoded: EncodedColumn) -> None:
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
            address_of(self._memory.payloads),
            len(self._memory.payloads),
            encoded.ends,
            encoded.kept,
            encoded.bounds,
        )

    def _encode_strings(self, segments: _Segments, encoded: EncodedColumn) -> None:
        column = encoded.column
        encode_strings(
            int(column.nullable),
            column.bounds,
            encoded.page_rows,
            segments.values,
            segments.bytes,
            segments.bits,
            segments.skip,
            segments.firsts,
            address_of(self._memory.payloads),
            len(self._memory.payloads),
            encoded.ends,
            encoded.kept,
            encoded.sizes,
            encoded.bounds,
        )

    def _chunk(self, encoded: EncodedColumn) -> EncodedChunk:
        """Compress pages and put headers before them."""
        ends = encoded.ends
        offsets, sizes, headers, checksums = np.empty((4, len(ends)), np.int64)
        raw_size = int(ends[-1])
        room = room_for(raw_size) + (room_for(0) + HEADER_ROOM) * len(ends) + SLACK
        functions = zstd() if encoded.codec == Codec.ZSTD else None
        size = write_pages(
            functions.compress if functions else 0,
            functions.compressor(self._level) if functions else 0,
            encoded.column.encoding,
            encoded.page_rows,
            encoded.rows - (encoded.pages - 1) * encoded.page_rows,
            -1 if encoded.words is None else encoded.words,
            address_of(self._memory.payloads),
            ends,
            self._memory.written.room(room),
            room,
            offsets,
            sizes,
            headers,
            checksums,
        )
        if size <= 0:
            raise AssertionError("there is room for what zstd writes")
        raw_size += int(headers.sum())
        bounds = bounds_of(encoded)
        first = len(ends) - encoded.pages  # behind the dictionary
        return EncodedChunk(
            metadata=metadata_of(encoded, raw_size, size, int(offsets[first]), bounds),
            raw=self._memory.written.keep(size),
            pages=EncodedPages(
                offsets[first:],
                sizes[first:],
                np.arange(0, encoded.rows, encoded.page_rows),
                encoded.sizes if encoded.column.physical == Physical.BYTE_ARRAY else None,
            ),
            checksums=checksums,
            bounds=None if bounds is None else column_index(bounds),
        )


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
        return self._bytes_count + lists * (9 * self.rows + PAGE_ROOM * pages) + levels + SLACK
