"""Pages of flat columns into Arrow arrays, by kernels: decompressed and decoded.

The caller has verified the bytes, each once: pages by the checksums of the file's blocks, the index
of where they lie with the tail. Page checksums are for other readers: they lie beside their
pages, so a page that was swapped for another would pass. Whatever bytes come here, no address
outside of them is read: headers, streams and lengths are held against each page's end, and a page
must hold the rows that the index names and be used up exactly.

For bytes that are not understood, as for bytes that contradict themselves, the answer is None. The
caller then reads the row group in the slow way.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakebed.kernels import decoding as encodings
from lakebed.kernels import page_columns as kernels
from lakebed.kernels.decoding_strings import OpenedPages
from lakebed.kernels.gathering import SLACK
from lakebed.kernels.keys import Numbers, Table
from lakebed.kernels.page_columns import BITS, DECIMALS, NUMBERS, STRINGS
from lakebed.kernels.page_headers import (
    DATA_PAGE,
    DICTIONARY_PAGE,
    read_page_locations,
    words_of_page,
)
from lakebed.kernels.zstd import zstd
from lakebed.parquet_bytes.footer import Chunk, Codec, Footer, ParquetColumn, Physical, RowGroup

_LOCATION_BYTES_MIN = 7
_PLAIN_DICTIONARY = 2
"""The number that a page of a dictionary may have in old files, for plain values."""


def _bits(numbers: Iterable[int]) -> int:
    return functools.reduce(int.__or__, (1 << number for number in numbers), 0)


_DATA_ENCODINGS = frozenset(
    (
        encodings.PLAIN,
        encodings.DICTIONARY,
        encodings.DELTA_NUMBERS,
        encodings.DELTA_LENGTHS,
        encodings.DELTA_BYTES,
    )
)
_DICTIONARY_ENCODINGS = _bits((encodings.PLAIN, _PLAIN_DICTIONARY))
_ROOM_MAX = 1 << 30
"""Most bytes for pages that are decompressed together; what would need more is left to Arrow."""
_ROWS_MAX = 1 << 24
"""Most rows of one call; more in one page are left to Arrow."""
_ROOM_KEPT_MAX = 8 << 20
_ALIGNED = 64
_OFFSET_BYTES, _DECIMAL_BYTES = 4, 16


class Flat(msgspec.Struct, frozen=True):
    """The storage format of a column without members.

    size: of a value in a page, where it is fixed.
    encodings: those its data pages may have, a bit for each of Parquet's numbers.
    """

    type: pa.DataType
    kind: int
    size: int
    optional: bool
    codec: Codec
    encodings: int


class Dictionary(msgspec.Struct, frozen=True):
    """The strings of a dictionary page."""

    offsets: npt.NDArray[np.int32]
    bytes: Any  # a buffer of Arrow


class PageLocations(msgspec.Struct, frozen=True):
    """The locations of a row group's pages in the file. All chunks' pages begin with the same rows.

    starts, ends: offsets of the pages, a row for each chunk.
    first_rows: the first row of each page, then the number of all rows.
    """

    starts: Table
    ends: Table
    first_rows: Numbers


def flat_of(field: pa.Field, column: ParquetColumn, chunk: Chunk) -> Flat | None:
    """Return how a column's chunk is stored; None: it is not known here."""
    kind = _kind(field.type, column)
    if kind is None or column.repetition_max or len(column.path) > 1:
        return None
    if chunk.codec not in (Codec.UNCOMPRESSED, Codec.ZSTD):
        return None
    known = _bits(_DATA_ENCODINGS.intersection(chunk.encodings))
    return Flat(field.type, *kind, column.definition_max == 1, Codec(chunk.codec), known)


def _kind(type_: pa.DataType, column: ParquetColumn) -> tuple[int, int] | None:
    """Return how values of a type lie in pages: a kind and a size; None: not known here."""
    kinds = pa.types
    physical = column.physical
    if kinds.is_string(type_) or kinds.is_binary(type_):
        return (STRINGS, 0) if physical == Physical.BYTE_ARRAY else None
    if kinds.is_boolean(type_):
        return (BITS, 0) if physical == Physical.BOOLEAN else None
    if kinds.is_decimal128(type_):
        known = physical == Physical.FIXED_LEN_BYTE_ARRAY and 0 < column.type_length <= 16
        return (DECIMALS, column.type_length) if known else None
    if not kinds.is_primitive(type_) or kinds.is_float16(type_):
        return None
    if kinds.is_floating(type_):
        wide, narrow = Physical.DOUBLE, Physical.FLOAT
    else:
        wide, narrow = Physical.INT64, Physical.INT32
    size = 8 if type_.bit_width == 64 else 4
    return (NUMBERS, size) if physical == (wide if size == 8 else narrow) else None


def page_locations(
    footer: Footer, row_group: RowGroup, chunks: Sequence[Chunk]
) -> PageLocations | None:
    """Return where the pages of some chunks lie, as `page_index.pages_of` tells it; None: it is not
    told, or contradicts itself, or they do not begin with the same rows."""
    found = []
    for chunk in chunks:
        if chunk.offset_index is None:
            return None
        start, end = (offset - footer.tail_offset for offset in chunk.offset_index)
        found.append((start, end, chunk.start, chunk.end))
    pages_max = max(end - start for start, end, *_ in found) // _LOCATION_BYTES_MIN + 1
    starts = np.empty((len(chunks), pages_max), np.int64)
    ends, first_rows = np.empty_like(starts), np.empty(pages_max + 1, np.int64)
    tail = address_of(footer.tail)
    count = read_page_locations(
        tail, np.array(found, np.int64), row_group.rows, starts, ends, first_rows
    )
    if count <= 0:
        return None
    starts, ends = (np.ascontiguousarray(part[:, :count]) for part in (starts, ends))
    return PageLocations(starts, ends, first_rows[: count + 1])


def address_of(raw: bytes | memoryview | npt.NDArray[Any]) -> int:
    """Return where bytes lie."""
    array = raw if isinstance(raw, np.ndarray) else np.frombuffer(raw, np.uint8)
    address: int = array.__array_interface__["data"][0]
    return address


def decode_dictionary(column: Flat, raw: memoryview) -> Dictionary | None:
    """Return the strings of a chunk's dictionary page, which is all of `raw`."""
    if column.kind != STRINGS:
        return None
    at = address_of(raw)
    count = words_of_page(at, at + len(raw))
    if count < 0:
        return None
    words = msgspec.structs.replace(column, optional=False, encodings=_DICTIONARY_ENCODINGS)
    locations = PageLocations(np.array([[0]]), np.array([[len(raw)]]), np.array([0, count]))
    pages = RowGroupPages([words], locations, kind=DICTIONARY_PAGE)
    pages.lies_at(0, at)
    decoded = pages.decode(0, 1)
    if decoded is None:
        return None
    _, offsets, data = decoded[0].buffers()
    return Dictionary(np.frombuffer(offsets, np.int32, count + 1), data)


class _Scratch(threading.local):
    """The buffers of one thread, used again for the next pages."""

    def __init__(self) -> None:
        self.room = np.empty(0, np.uint8)
        self.present = np.empty(0, np.uint8)
        self.shared = self.own = np.empty(0, np.int32)

    def fit(self, rows: int) -> None:
        """Have room for so many rows of all columns."""
        if len(self.present) < rows:
            self.present = np.empty(rows, np.uint8)
            self.shared, self.own = np.empty(rows, np.int32), np.empty(rows, np.int32)


_SCRATCH = _Scratch()


class _Layout(msgspec.Struct, frozen=True):
    """The layout of columns of so many rows in one buffer: values or offsets, and validity."""

    values: Numbers
    bits: Numbers
    size: int


class RowGroupPages:
    """Decodes pages of some columns of one row group, the same rows of each."""

    def __init__(
        self, columns: Sequence[Flat], locations: PageLocations, *, kind: int = DATA_PAGE
    ) -> None:
        self._flats = columns
        self._locations = locations
        self._kind = kind
        self._facts = np.zeros((len(columns), kernels.COLUMN_FACTS), np.int64)
        for fact, flat in zip(self._facts, columns, strict=True):
            fact[kernels.KIND], fact[kernels.SIZE] = flat.kind, flat.size
            fact[kernels.OPTIONAL], fact[kernels.ENCODINGS] = flat.optional, flat.encodings
            fact[kernels.PACKED] = flat.codec == Codec.ZSTD
        self._strings = np.flatnonzero(self._facts[:, kernels.KIND] == STRINGS)
        self._layouts: dict[int, _Layout] = {}
        self._dictionaries: dict[int, Dictionary] = {}
        self._words = np.zeros(1, np.int32)
        self._facts[:, kernels.WORDS_END] = 1
        self._room: npt.NDArray[np.uint8] | None = None

    def lies_at(self, index: int, base: int) -> None:
        """Tell where a column's bytes lie: an address, less the offset in the file."""
        self._facts[index, kernels.BASE] = base

    def forget_room(self) -> None:
        """Give up memory that pages were decompressed into. What was decoded does not need it."""
        self._room = None

    def take_dictionary(self, index: int, found: Dictionary) -> None:
        """Tell a column's dictionary."""
        self._dictionaries[index] = found  # keeps its bytes, too
        fact, words = self._facts[index], len(self._words)
        self._words = np.concatenate([self._words, found.offsets])
        fact[kernels.WORDS], fact[kernels.WORDS_END] = words, len(self._words)
        fact[kernels.WORDS_AT] = found.bytes.address
        fact[kernels.WORDS_BYTES_END] = found.bytes.address + found.bytes.size

    def decode(self, page: int, last: int) -> list[pa.Array] | None:
        """Return the rows of pages from one up to another; None where anything is not as expected.

        Arrays share buffers.
        """
        first_rows, facts, scratch = self._locations.first_rows, self._facts, _SCRATCH
        rows = int(first_rows[last] - first_rows[page])
        if rows > _ROWS_MAX:
            return None
        layout = self._layout(rows)
        fixed = pa.allocate_buffer(layout.size)
        facts[:, kernels.VALUES_AT] = fixed.address + layout.values
        facts[:, kernels.BITS_AT] = fixed.address + layout.bits
        scratch.fit(rows * len(facts))
        pages = np.empty(((last - page) * len(facts), encodings.PAGE_FACTS), np.int64)
        bytes_at = np.empty(len(pages), np.int64)
        opened = OpenedPages(pages, scratch.present, scratch.shared, scratch.own, bytes_at)
        if not self._open(page, last, opened):
            return None
        text = None
        if len(self._strings):
            sizes = facts[self._strings, kernels.BYTES]
            ends = np.cumsum(sizes + SLACK)
            text = pa.allocate_buffer(int(ends[-1]))
            facts[self._strings, kernels.BYTES_AT] = text.address + ends - sizes - SLACK
            kernels.fill_columns(facts, self._words, opened, rows)
        return self._arrays(rows, layout, fixed, text)

    def _open(self, page: int, last: int, opened: OpenedPages) -> bool:
        """Decompress pages, and return whether they are what they should be."""
        scratch, locations = _SCRATCH, self._locations
        functions, room = zstd(), scratch.room
        pages = kernels.PageRange(
            self._kind, locations.starts, locations.ends, locations.first_rows, page, last
        )
        while True:
            decompressor = kernels.Decompressor(
                functions.decompress, functions.decompressor(), address_of(room), len(room)
            )
            needed = kernels.open_columns(self._facts, pages, self._words, decompressor, opened)
            if not 0 < needed <= _ROOM_MAX:
                self._room = room  # until strings are filled in
                return needed == kernels.OPENED
            room = np.empty(needed + needed // 4, np.uint8)
            if len(room) <= _ROOM_KEPT_MAX:
                scratch.room = room

    def _layout(self, rows: int) -> _Layout:
        if rows not in self._layouts:
            bits = -(-rows // 8)
            values, validity, at = [], [], 0
            for flat in self._flats:
                values.append(at)
                at += _aligned(_value_bytes(flat, rows))
                validity.append(at)
                at += _aligned(bits) if flat.optional else 0
            self._layouts[rows] = _Layout(np.array(values), np.array(validity), at)
        return self._layouts[rows]

    def _arrays(
        self, rows: int, layout: _Layout, fixed: pa.Buffer, text: pa.Buffer | None
    ) -> list[pa.Array] | None:
        """Return decoded columns; None where a number is too large for its type."""
        arrays = []
        facts: list[list[int]] = self._facts.tolist()
        parts = zip(facts, layout.values.tolist(), layout.bits.tolist(), strict=True)
        for flat, (fact, at, bits_at) in zip(self._flats, parts, strict=True):
            nulls = fact[kernels.NULLS]
            validity = fixed.slice(bits_at, -(-rows // 8)) if nulls else None
            buffers = [validity, fixed.slice(at, _value_bytes(flat, rows))]
            if flat.kind == STRINGS:
                assert text is not None, "strings have bytes"
                start = fact[kernels.BYTES_AT] - text.address
                buffers.append(text.slice(start, fact[kernels.BYTES]))
            elif flat.kind == NUMBERS and flat.type.bit_width < 32:
                narrow = _narrow(flat.type, buffers[1], rows)
                if narrow is None:
                    return None
                buffers[1] = narrow
            arrays.append(pa.Array.from_buffers(flat.type, rows, buffers, nulls))
        return arrays


def _value_bytes(flat: Flat, rows: int) -> int:
    """Return how many bytes values, or offsets of strings, have."""
    if flat.kind == STRINGS:
        return _OFFSET_BYTES * (rows + 1)
    if flat.kind == DECIMALS:
        return _DECIMAL_BYTES * rows
    return -(-rows // 8) if flat.kind == BITS else flat.size * rows


def _aligned(size: int) -> int:
    return -(-size // _ALIGNED) * _ALIGNED


def _narrow(type_: pa.DataType, wide: pa.Buffer, rows: int) -> pa.Buffer | None:
    """Return numbers of one or two bytes, which Parquet keeps as four."""
    numbers = np.frombuffer(wide, np.int32, rows)
    narrow = numbers.astype(str(type_))
    return pa.py_buffer(narrow) if np.array_equal(narrow, numbers) else None
