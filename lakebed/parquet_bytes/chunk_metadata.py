"""Makes what a file records of a column chunk that kernels encoded: ColumnMetaData and
ColumnIndex."""

from __future__ import annotations

import ctypes

import msgspec
import numpy as np
import pyarrow as pa

from lakebed.kernels.encoding import UNBOUNDED
from lakebed.kernels.page_writing import DATA, DICTIONARY, write_bounds
from lakebed.kernels.toolchain.arrays import address_of
from lakebed.parquet_bytes.encoded import listed
from lakebed.parquet_bytes.footer import Codec, Encoding, Physical
from lakebed.parquet_bytes.thrift import BINARY, BOOL, I32, I64, STRUCT, Struct, list_head
from lakebed.parquet_bytes.varints import Numbers

STRINGS = (Encoding.DELTA_BYTE_ARRAY, Encoding.RLE_DICTIONARY)
SLACK = 64
"""Bytes behind what a kernel writes, of which it may write some, too."""


class ColumnEncoding(msgspec.Struct, frozen=True):
    """The encoding of a flat column.

    bounds: whether its pages' bounds are recorded, and are their first and last value.
    """

    name: str
    type: pa.DataType
    nullable: bool
    encoding: Encoding
    bounds: int = UNBOUNDED

    @property
    def physical(self) -> Physical:
        """Return how Parquet stores it."""
        if self.encoding in STRINGS:
            return Physical.BYTE_ARRAY
        if pa.types.is_floating(self.type):
            return Physical.FLOAT if self.type.bit_width == 32 else Physical.DOUBLE
        return Physical.INT64 if self.type.bit_width == 64 else Physical.INT32


class EncodedColumn:
    """The result of kernels for a chunk and each of its pages.

    ends: where payloads end, the dictionary's last; kept: how many values are not null; sizes:
    bytes of strings. bounds: as `kernels.encoding` gives them. words: strings of the dictionary,
    None where there is none.
    """

    def __init__(self, column: ColumnEncoding, codec: Codec, rows: int, page_rows: int) -> None:
        self.column = column
        self.codec = codec
        self.rows = rows
        self.page_rows = page_rows
        self.pages = -(-rows // page_rows)
        has_dictionary = column.encoding == Encoding.RLE_DICTIONARY
        self.ends = np.zeros(self.pages + has_dictionary, np.int64)
        self.kept, self.sizes = np.zeros((2, self.pages), np.int64)
        self.bounds = np.zeros(4 * self.pages, np.int64)
        self.words: int | None = None


class ChunkBounds(msgspec.Struct, frozen=True):
    """Bounds of a chunk without nulls: the least and greatest values of its pages, as they
    are stored, how they go on, and the least and greatest of all."""

    mins: bytes
    maxs: bytes
    order: int
    least: bytes
    greatest: bytes
    pages: int


def bounds_of(encoded: EncodedColumn) -> ChunkBounds | None:
    """Return what is recorded of a chunk's bounds; None: nothing."""
    if encoded.column.bounds == UNBOUNDED:
        return None
    physical, pages = encoded.column.physical, encoded.pages
    is_text = physical == Physical.BYTE_ARRAY
    width = 0 if is_text else 4 if physical == Physical.INT32 else 8
    found = encoded.bounds if is_text else encoded.bounds[: 2 * pages]
    lengths = int(found[1::2].sum()) if is_text else 2 * width * pages
    out = np.empty(lengths + 20 * pages + SLACK, np.uint8)
    facts = np.zeros(5, np.int64)
    write_bounds(width, found, address_of(out), facts)
    middle, end, order, least, greatest = facts.tolist()
    raw = out[:end].tobytes()
    return ChunkBounds(
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


def column_index(bounds: ChunkBounds) -> bytes:
    """Return a ColumnIndex, as it is stored."""
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


def metadata_of(
    encoded: EncodedColumn, raw_size: int, size: int, data_at: int, bounds: ChunkBounds | None
) -> Struct:
    """Return a ColumnMetaData.

    raw_size: without compression, headers included.
    data_at: where data pages begin, behind the dictionary if there is one.
    """
    column = encoded.column
    encodings = [Encoding.RLE, column.encoding]
    pages = [Struct({1: (I32, DATA), 2: (I32, column.encoding), 3: (I32, encoded.pages)})]
    fields = Struct()
    if encoded.words is not None:
        encodings.insert(0, Encoding.PLAIN)
        pages.insert(0, Struct({1: (I32, DICTIONARY), 2: (I32, Encoding.PLAIN), 3: (I32, 1)}))
        fields[11] = (I64, 0)
    fields |= {
        1: (I32, column.physical),
        2: listed(I32, encodings),
        3: listed(BINARY, [column.name.encode()]),
        4: (I32, encoded.codec),
        5: (I64, encoded.rows),
        6: (I64, raw_size),
        7: (I64, size),
        9: (I64, data_at),
        13: listed(STRUCT, pages),
    }
    if bounds is not None:
        fields[12] = (STRUCT, _statistics(column, bounds))
    if column.physical == Physical.BYTE_ARRAY or column.nullable:
        fields[16] = (STRUCT, _size_statistics(encoded))
    return Struct(sorted(fields.items()))


def _statistics(column: ColumnEncoding, bounds: ChunkBounds) -> Struct:
    least, greatest = bounds.least, bounds.greatest
    fields = Struct()
    if column.physical != Physical.BYTE_ARRAY:
        # As written before there was an order for each type: where it is that of the numbers.
        fields |= {1: (BINARY, greatest), 2: (BINARY, least)}
    fields[3] = (I64, 0)
    fields[5], fields[6] = (BINARY, greatest), (BINARY, least)
    fields[7], fields[8] = (BOOL, True), (BOOL, True)
    return fields


def _size_statistics(encoded: EncodedColumn) -> Struct:
    """Return bytes of strings, and how many values have each level."""
    column = encoded.column
    fields = Struct()
    if column.physical == Physical.BYTE_ARRAY:
        fields[1] = (I64, int(encoded.sizes.sum()))
    kept = int(encoded.kept.sum())
    fields[2] = listed(I64, [])
    fields[3] = listed(I64, [encoded.rows - kept, kept] if column.nullable else [])
    return fields
