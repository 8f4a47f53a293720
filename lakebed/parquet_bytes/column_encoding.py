"""Column chunks encoded by kernels: flat columns of numbers, text and bytes.

One call of a kernel writes the payloads of a chunk's pages, one makes pages of them, one writes
their bounds. A page's header has exactly these fields: 1 type, 2 and 3 sizes, 4 CRC-32 of
the bytes behind the header, 5 values, encoding, RLE and RLE for the levels; so the
sizes, the CRC-32, the number of values and the encoding determine every byte of it. pyarrow writes
it the same.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from lakebed.kernels import encoding as kernels
from lakebed.kernels.dictionaries import SLOTS, WORDS, encode_repeated
from lakebed.kernels.encoding_strings import encode_strings
from lakebed.kernels.packing import PAGE_ROOM
from lakebed.kernels.page_writing import (
    HEADER_ROOM,
    ChunkPayloads,
    Compressor,
    WrittenPages,
    write_pages,
)
from lakebed.kernels.toolchain.arrays import address_of
from lakebed.kernels.zstd import room_for, zstd
from lakebed.parquet_bytes.chunk_metadata import (
    SLACK,
    STRINGS,
    ColumnEncoding,
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
    """Return whether kernels write this type in this encoding."""
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
        """Let the next chunks overwrite those that were returned."""
        self._memory.written.clear()

    def close(self) -> None:
        """Give memory back: nothing of what was returned is needed any more."""
        self._memory.give_back()
        self._memory = EncoderMemory()

    def encode(
        self, column: ColumnEncoding, codec: Codec, arrays: Sequence[pa.Array], page_rows: int
    ) -> EncodedChunk | None:
        """Return a chunk of these values, at least one. page_rows: of every page but the last.

        None: a dictionary would be too large.
        """
        found = _Arrays(column, [array for array in arrays if len(array)])
        encoded, segments = EncodedColumn(column, codec, found.rows, page_rows), found.segments
        if len(self._memory.payloads) < (room := found.room(encoded.pages)):
            self._memory.payloads = np.empty(room, np.uint8)
        if column.encoding == Encoding.RLE_DICTIONARY:
            encoded.words = self._encode_repeated(segments, encoded)
            if encoded.words < 0:
                return None
        elif column.physical == Physical.BYTE_ARRAY:
            self._encode_strings(segments, encoded)
        else:
            self._encode_numbers(found.width, segments, encoded)
        return self._chunk(encoded)

    def _payloads(self, encoded: EncodedColumn) -> kernels.Payloads:
        """Return where the pages of a chunk are to be written."""
        memory = self._memory.payloads
        return kernels.Payloads(
            encoded.page_rows, address_of(memory), len(memory), encoded.ends, encoded.kept
        )

    def _encode_repeated(self, segments: kernels.ColumnSegments, encoded: EncodedColumn) -> int:
        return encode_repeated(
            encoded.column.nullable,
            segments,
            np.zeros(SLOTS, np.int64),
            np.zeros(WORDS, np.int64),
            self._payloads(encoded),
            encoded.sizes,
        )

    def _encode_numbers(
        self, width: int, segments: kernels.ColumnSegments, encoded: EncodedColumn
    ) -> None:
        column = encoded.column
        is_plain = column.encoding == Encoding.PLAIN
        format_ = kernels.NumberFormat(
            kernels.PLAIN if is_plain else kernels.DELTAS,
            width,
            pa.types.is_unsigned_integer(column.type),
            column.nullable,
            column.bounds,
        )
        kernels.encode_numbers(format_, segments, self._payloads(encoded), encoded.bounds)

    def _encode_strings(self, segments: kernels.ColumnSegments, encoded: EncodedColumn) -> None:
        column = encoded.column
        encode_strings(
            column.nullable,
            column.bounds,
            segments,
            self._payloads(encoded),
            encoded.sizes,
            encoded.bounds,
        )

    def _chunk(self, encoded: EncodedColumn) -> EncodedChunk:
        """Compress pages and put headers before them."""
        ends = encoded.ends
        written = WrittenPages(*np.empty((4, len(ends)), np.int64))
        raw_size = int(ends[-1])
        room = room_for(raw_size) + (room_for(0) + HEADER_ROOM) * len(ends) + SLACK
        functions = zstd() if encoded.codec == Codec.ZSTD else None
        compressor = Compressor(0, 0)
        if functions is not None:
            compressor = Compressor(functions.compress, functions.compressor(self._level))
        payloads = ChunkPayloads(
            encoded.column.encoding,
            encoded.page_rows,
            encoded.rows - (encoded.pages - 1) * encoded.page_rows,
            -1 if encoded.words is None else encoded.words,
            address_of(self._memory.payloads),
            ends,
        )
        size = write_pages(compressor, payloads, self._memory.written.room(room), room, written)
        if size <= 0:
            raise AssertionError("there is room for what zstd writes")
        raw_size += int(written.headers.sum())
        bounds = bounds_of(encoded)
        first = len(ends) - encoded.pages  # behind the dictionary
        return EncodedChunk(
            metadata=metadata_of(encoded, raw_size, size, int(written.offsets[first]), bounds),
            raw=self._memory.written.keep(size),
            pages=EncodedPages(
                written.offsets[first:],
                written.sizes[first:],
                np.arange(0, encoded.rows, encoded.page_rows),
                encoded.sizes if encoded.column.physical == Physical.BYTE_ARRAY else None,
            ),
            checksums=written.checksums,
            bounds=None if bounds is None else column_index(bounds),
        )


class _Arrays:
    """The arrays that hold a column's values: each array is a segment to kernels."""

    def __init__(self, column: ColumnEncoding, arrays: Sequence[pa.Array]) -> None:
        self.arrays = arrays
        values, bytes_, bits = np.zeros((3, len(arrays)), np.int64)
        skip = np.array([array.offset for array in arrays], np.int64)
        firsts = np.cumsum([0, *map(len, arrays)], dtype=np.int64)
        self.segments = kernels.ColumnSegments(values, bytes_, bits, skip, firsts)
        self.rows = int(firsts[-1])
        self.is_text = column.physical == Physical.BYTE_ARRAY
        self.width = 4 if self.is_text else column.type.bit_width // 8
        self._bytes_count = 0
        for index, array in enumerate(arrays):
            validity, data, *texts = array.buffers()
            values[index] = data.address + self.width * array.offset
            if validity is not None and array.null_count:
                bits[index] = validity.address
            if self.is_text:
                offsets = np.frombuffer(data, np.int32, len(array) + 1, 4 * array.offset)
                self._bytes_count += int(offsets[-1]) - int(offsets[0])
                bytes_[index] = texts[0].address if texts[0] is not None else 0

    def room(self, pages: int) -> int:
        """Return how many bytes their pages may take, whatever the values are."""
        lists = 2 if self.is_text else 1
        levels = self.rows // 8 + 16 * pages
        return self._bytes_count + lists * (9 * self.rows + PAGE_ROOM * pages) + levels + SLACK
