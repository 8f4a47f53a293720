"""Pages of flat columns into Arrow arrays, by kernels: decompressed and decoded.

The caller has verified the bytes, each once: pages by the checksums of the file's blocks, the index
that tells where they lie with the tail. Page checksums are for other readers: they lie beside their
pages, so a page in another's place would pass. Whatever bytes come here, no address outside of them
is read: headers, streams and lengths are held against each page's end, and a page must hold the
rows that the index tells and be used up exactly.

What is not understood, and what contradicts itself, is told apart by nobody here: the answer is
None, and the caller reads the row group in the slow way.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakebed.kernels import decoding as kernels
from lakebed.kernels.decoding_strings import fill_strings, measure_strings
from lakebed.kernels.gathering import SLACK
from lakebed.kernels.page_headers import (
    DATA_PAGE,
    DICTIONARY_PAGE,
    OPENED,
    open_pages,
    read_places,
)
from lakebed.kernels.zstd import zstd
from lakebed.parquet_bytes.footer import Chunk, Codec, Footer, Group, Leaf, Physical

Numbers = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]
_NO_PRESENCE = np.empty(0, np.uint8)
_NO_WORDS = np.zeros(1, np.int32)

_PLACE_BYTES_MIN = 7

BITS, NUMBERS, DECIMALS, STRINGS = range(4)
_PLAIN_DICTIONARY = 2
"""The number that a page of a dictionary may have in old files, for plain values."""


class Flat(msgspec.Struct, frozen=True):
    """How a column without members is stored. size: of a value in a page, where it is fixed.

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


def _bits(encodings: Iterable[int]) -> int:
    return functools.reduce(int.__or__, (1 << encoding for encoding in encodings), 0)


_DATA_ENCODINGS = frozenset(
    (
        kernels.PLAIN,
        kernels.DICTIONARY,
        kernels.DELTA_NUMBERS,
        kernels.DELTA_LENGTHS,
        kernels.DELTA_BYTES,
    )
)
_DICTIONARY_ENCODINGS = _bits((kernels.PLAIN, _PLAIN_DICTIONARY))
_ROOM_MAX = 1 << 30
"""For pages that are decompressed together; where more would be needed they are left to Arrow."""
_ROOM_KEPT_MAX = 8 << 20
NO_DICTIONARY = Dictionary(_NO_WORDS, pa.py_buffer(b""))


class Pages(msgspec.Struct, frozen=True):
    """Pages of one chunk, side by side: where each begins and ends in `raw`, and its rows."""

    raw: memoryview
    starts: Numbers
    ends: Numbers
    rows: Numbers


class Places(msgspec.Struct, frozen=True):
    """Where the pages of a chunk begin and end in the file, and the first row of each, then all
    rows."""

    starts: Numbers
    ends: Numbers
    first_rows: list[int]


def flat_of(field: pa.Field, leaf: Leaf, chunk: Chunk) -> Flat | None:
    """Return how a column's chunk is stored; None: it is not known here."""
    kind = _kind(field.type, leaf)
    if kind is None or leaf.repetition_max or len(leaf.path) > 1:
        return None
    if chunk.codec not in (Codec.UNCOMPRESSED, Codec.ZSTD):
        return None
    encodings = _bits(_DATA_ENCODINGS.intersection(chunk.encodings))
    return Flat(field.type, *kind, leaf.definition_max == 1, Codec(chunk.codec), encodings)


def _kind(type_: pa.DataType, leaf: Leaf) -> tuple[int, int] | None:
    """Return how values of a type lie in pages: a kind and a size; None: not known here."""
    kinds = pa.types
    physical = leaf.physical
    if kinds.is_string(type_) or kinds.is_binary(type_):
        return (STRINGS, 0) if physical == Physical.BYTE_ARRAY else None
    if kinds.is_boolean(type_):
        return (BITS, 0) if physical == Physical.BOOLEAN else None
    if kinds.is_decimal128(type_):
        known = physical == Physical.FIXED_LEN_BYTE_ARRAY and 0 < leaf.type_length <= 16
        return (DECIMALS, leaf.type_length) if known else None
    if not kinds.is_primitive(type_) or kinds.is_float16(type_):
        return None
    if kinds.is_floating(type_):
        wide, narrow = Physical.DOUBLE, Physical.FLOAT
    else:
        wide, narrow = Physical.INT64, Physical.INT32
    size = 8 if type_.bit_width == 64 else 4
    return (NUMBERS, size) if physical == (wide if size == 8 else narrow) else None


def places_of(footer: Footer, group: Group, chunk: Chunk) -> Places | None:
    """Return where a chunk's pages lie, as `page_index.pages_of` tells it; None: it is not told, or
    contradicts itself."""
    if chunk.offset_index is None:
        return None
    start, end = (offset - footer.tail_offset for offset in chunk.offset_index)
    raw = np.frombuffer(footer.tail, np.uint8)
    base = raw.__array_interface__["data"][0]
    found = np.empty(((end - start) // _PLACE_BYTES_MIN + 1, 3), np.int64)
    count = read_places(base + start, base + end, found)
    if count <= 0:
        return None
    starts, sizes, first_rows = found[:count, 0].copy(), found[:count, 1], found[:count, 2]
    ends = starts + sizes
    rows = [*first_rows.tolist(), group.rows]
    fits = (
        starts[0] >= chunk.start
        and ends[-1] <= chunk.end
        and (sizes > 0).all()
        and (starts[1:] >= ends[:-1]).all()
        and rows[0] == 0
        and all(low < high for low, high in pairwise(rows))
    )
    return Places(starts, ends, rows) if fits else None


def decode_dictionary(column: Flat, raw: memoryview) -> Dictionary | None:
    """Return the strings of a chunk's dictionary page, which is all of `raw`."""
    if column.kind != STRINGS:
        return None
    pages = Pages(raw, np.array([0]), np.array([len(raw)]), np.array([-1]))
    opened = _open(column, pages, DICTIONARY_PAGE)
    if opened is None:
        return None
    opened.pages[0, kernels.ENCODING] = kernels.PLAIN
    required = msgspec.structs.replace(column, optional=False)
    strings = _strings(required, opened, NO_DICTIONARY)
    if strings is None:
        return None
    _, offsets, data = strings.buffers()
    return Dictionary(np.frombuffer(offsets, np.int32, len(strings) + 1), data)


def decode_pages(
    column: Flat, pages: Pages, dictionary: Dictionary = NO_DICTIONARY
) -> pa.Array | None:
    """Return the rows of some pages; None where anything is not as expected."""
    opened = _open(column, pages, DATA_PAGE)
    if opened is None:
        return None
    if column.kind == STRINGS:
        return _strings(column, opened, dictionary)
    present = np.empty(opened.rows, np.uint8) if column.optional else _NO_PRESENCE
    if column.kind == BITS:
        bits = np.empty(opened.rows, np.uint8)
        bad = kernels.decode_bits(opened.pages, column.optional, present, bits)
        out = pa.py_buffer(np.packbits(bits, bitorder="little"))
    elif column.kind == DECIMALS:
        out = pa.allocate_buffer(16 * opened.rows)
        bad = kernels.decode_decimals(
            opened.pages, column.optional, column.size, present, out.address
        )
    else:
        out = pa.allocate_buffer(column.size * opened.rows)
        bad = kernels.decode_numbers(
            opened.pages, column.optional, column.size, present, out.address
        )
    if bad != kernels.DECODED:
        return None
    validity, nulls = _validity(present)
    if column.kind == NUMBERS and column.type.bit_width < 32:
        return _narrow(column.type, out, opened.rows, validity, nulls)
    return pa.Array.from_buffers(column.type, opened.rows, [validity, out], nulls)


class _Room(threading.local):
    """Where a thread's pages are decompressed, used again."""

    def __init__(self) -> None:
        self.bytes = np.empty(0, np.uint8)


_ROOM = _Room()


class _Opened(msgspec.Struct, frozen=True):
    """Pages as kernels take them, until the thread opens others. room: what they lie in."""

    pages: Numbers
    rows: int
    room: Bytes


def _open(column: Flat, given: Pages, kind: int) -> _Opened | None:
    """Return pages decompressed; None where one is not what it should be."""
    raw = np.frombuffer(given.raw, np.uint8)
    pages = np.empty((len(given.starts), kernels.PAGE_FACTS), np.int64)
    function = context = 0
    if column.codec == Codec.ZSTD:
        function, context = zstd().decompress, zstd().decompressor()
    encodings = _DICTIONARY_ENCODINGS if kind == DICTIONARY_PAGE else column.encodings
    room = _ROOM.bytes
    while True:
        needed = open_pages(
            kind,
            _address(raw),
            given.starts,
            given.ends,
            given.rows,
            encodings,
            function,
            context,
            _address(room),
            len(room),
            pages,
        )
        if needed == OPENED:
            return _Opened(pages, int(pages[:, kernels.ROWS].sum()), room)
        if not 0 < needed <= _ROOM_MAX:
            return None
        room = np.empty(needed + needed // 4, np.uint8)
        if len(room) <= _ROOM_KEPT_MAX:
            _ROOM.bytes = room


def _address(array: Bytes) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


def _strings(column: Flat, opened: _Opened, dictionary: Dictionary) -> pa.Array | None:
    rows = opened.rows
    present = np.empty(rows, np.uint8) if column.optional else _NO_PRESENCE
    shared, own = np.empty(rows, np.int32), np.empty(rows, np.int32)
    bytes_at = np.empty(len(opened.pages), np.int64)
    offsets = pa.allocate_buffer(4 * (rows + 1))
    ends = np.frombuffer(offsets, np.int32)
    words, optional = dictionary.offsets, column.optional
    if (
        measure_strings(opened.pages, optional, words, present, shared, own, bytes_at, ends)
        != kernels.DECODED
    ):
        return None
    size = int(ends[-1])
    data = pa.allocate_buffer(size + SLACK)
    words_at = dictionary.bytes.address
    fill_strings(
        opened.pages,
        optional,
        words,
        words_at,
        words_at + dictionary.bytes.size,
        present,
        shared,
        own,
        bytes_at,
        ends,
        data.address,
    )
    validity, nulls = _validity(present)
    return pa.Array.from_buffers(column.type, rows, [validity, offsets, data.slice(0, size)], nulls)


def _validity(present: npt.NDArray[np.uint8]) -> tuple[pa.Buffer | None, int]:
    nulls = len(present) - int(np.count_nonzero(present))
    if not nulls:
        return None, 0
    return pa.py_buffer(np.packbits(present, bitorder="little")), nulls


def _narrow(
    type_: pa.DataType, wide: pa.Buffer, rows: int, validity: pa.Buffer | None, nulls: int
) -> pa.Array | None:
    """Return numbers of one or two bytes, which Parquet keeps as four."""
    numbers = np.frombuffer(wide, np.int32, rows)
    narrow = numbers.astype(type_.to_pandas_dtype())
    if not np.array_equal(narrow, numbers):
        return None
    return pa.Array.from_buffers(type_, rows, [validity, pa.py_buffer(narrow)], nulls)
