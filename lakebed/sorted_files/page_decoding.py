"""Rows of some pages: Arrow decodes a file in memory that has these pages and nothing else.

The file is made and opened before its pages are there: it takes their sizes, which the index tells.
What is decoded together becomes one file: opening one costs Arrow as much as a page does. The
footer is put together from parts that are kept, for the same reason.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import accumulate

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from lakebed.parquet_bytes.footer import MAGIC
from lakebed.parquet_bytes.thrift import (
    BINARY,
    I32,
    LIST,
    STRUCT,
    Struct,
    Values,
    encode_struct,
    list_head,
    zigzag,
)
from lakebed.sorted_files.page_choosing import ColumnPages
from lakebed.sorted_files.page_index_parts import NotByPagesError

_VERSION = 2
_KEPT_MAX = 4096
_I32, _I64 = 0x15, 0x16
"""Heads of fields whose number is one above the last one's; each step more adds 16, a list is 0x19,
a struct 0x1C."""


class Stretch(msgspec.Struct, frozen=True):
    """Rows `[first, end)` of a row group: pages of some of its columns, which hold just these."""

    first: int
    end: int
    columns: tuple[ColumnPages, ...]


class PageFile:
    """A Parquet file in memory that has stretches of the same columns for row groups.

    names, elements: of the columns. Raises NotByPagesError: Arrow cannot open it.
    """

    def __init__(
        self, names: Sequence[str], elements: Sequence[bytes], stretches: Sequence[Stretch]
    ) -> None:
        self._names = names
        self._stretches = stretches
        self._places, size, tail = _laid_out(names, elements, stretches)
        file = pa.allocate_buffer(size + len(tail))
        self._bytes = memoryview(file).cast("B")
        self._bytes[size:] = tail
        try:
            self._parquet = pq.ParquetFile(pa.BufferReader(file), pre_buffer=False)
        except (pa.ArrowException, OSError, ValueError) as error:
            raise NotByPagesError(str(error)) from error

    @property
    def types(self) -> list[pa.DataType]:
        """The types of the columns."""
        types: list[pa.DataType] = self._parquet.schema_arrow.types
        return types

    def read(
        self,
        stretches: Sequence[int],
        columns: Sequence[int],
        bodies: Sequence[Mapping[int, bytes]],
    ) -> list[list[pa.Array]]:
        """Return these columns of each of some stretches. bodies: of each of these at least the
        columns' pages, of the sizes that the index says, by where they begin in their file.

        Raises:
            NotByPagesError: Arrow cannot decode them.
        """
        for stretch, own in zip(stretches, bodies, strict=True):
            for column in columns:
                at = self._places[stretch][column]
                for page in self._stretches[stretch].columns[column]:
                    self._bytes[at : at + page.size] = own[page.offset]
                    at += page.size
        names = [self._names[column] for column in columns]
        try:
            found = self._parquet.read_row_groups(stretches, columns=names, use_threads=False)
        except (pa.ArrowException, OSError, ValueError) as error:
            raise NotByPagesError(str(error)) from error
        sizes = [self._stretches[place].end - self._stretches[place].first for place in stretches]
        if len(found) != sum(sizes):
            raise NotByPagesError("pages have other rows than the index says")
        # By name: others are found, too, if a name has a dot in it.
        whole = [_in_one(found.column(name)) for name in names]
        begins = accumulate(sizes, initial=0)
        return [
            [column.slice(begin, size) for column in whole]
            for begin, size in zip(begins, sizes, strict=False)
        ]


def _in_one(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _laid_out(
    names: Sequence[str], elements: Sequence[bytes], stretches: Sequence[Stretch]
) -> tuple[list[list[int]], int, bytes]:
    """Return where each stretch's columns begin, where the last one ends, and what follows."""
    groups = bytearray()
    places: list[list[int]] = []
    at = len(MAGIC)
    for stretch in stretches:
        begun, rows = at, stretch.end - stretch.first
        places.append([])
        groups += list_head(len(names), STRUCT)
        for name, pages in zip(names, stretch.columns, strict=True):
            size = sum([page.size for page in pages])
            groups += _chunk(name, pages, rows, at, size)
            places[-1].append(at)
            at += size
        groups += _number(_I64, at - begun) + _number(_I64, rows) + b"\0"
    tail = b"".join(
        (
            _number(_I32, _VERSION),
            list_head(1 + len(elements), STRUCT),
            _root(len(elements)),
            *elements,
            _number(_I64, sum(stretch.end - stretch.first for stretch in stretches)),
            list_head(len(stretches), STRUCT),
            groups,
            b"\0",
        )
    )
    return places, at, b"".join((tail, len(tail).to_bytes(4, "little"), MAGIC))


def _chunk(path: str, pages: ColumnPages, rows: int, at: int, size: int) -> bytes:
    """Return a column chunk whose pages begin at `at`."""
    chunk, dictionary = pages.column.chunk, pages.column.dictionary
    begins, length = zigzag(at), zigzag(size)
    parts = [
        b"\x26",
        begins,
        b"\x1c",
        _kind(path, chunk.physical, chunk.codec, chunk.encodings),
        b"\x16",
        zigzag(rows),
        b"\x16",
        length,
        b"\x16",
        length,
        b"\x26",
        begins if dictionary is None else zigzag(at + dictionary.size),
    ]
    if dictionary is not None:
        parts += (b"\x26", begins)
    return b"".join((*parts, b"\0\0"))


@lru_cache(maxsize=_KEPT_MAX)
def _kind(path: str, physical: int, codec: int, encodings: tuple[int, ...]) -> bytes:
    """Return the first four fields of a chunk's metadata, which do not tell of its pages."""
    fields = Struct(
        {
            1: (I32, physical),
            2: (LIST, Values(I32, list(encodings))),
            3: (LIST, Values(BINARY, [path.encode()])),
            4: (I32, codec),
        }
    )
    return encode_struct(fields)[:-1]


@lru_cache(maxsize=_KEPT_MAX)
def _root(columns: int) -> bytes:
    return encode_struct(Struct({4: (BINARY, b"schema"), 5: (I32, columns)}))


def _number(head: int, value: int) -> bytes:
    return bytes([head]) + zigzag(value)
