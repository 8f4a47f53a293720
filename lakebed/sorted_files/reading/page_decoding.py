"""Rows of some pages: Arrow decodes a file in memory that has these pages and nothing else.

What is decoded together becomes one file: opening a file costs Arrow more than a page does. The
footer is put together from parts that are kept, for the same reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import groupby

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
    ThriftList,
    encode_struct,
    varint,
    zigzag,
)
from lakebed.sorted_files.reading.page_choosing import ColumnPages
from lakebed.sorted_files.reading.page_index_parts import NotByPagesError

_VERSION = 2
_KEPT_MAX = 4096
_I32, _I64, _LIST = 0x15, 0x16, 0x19
"""Heads of fields whose number is one above the last one's; each step more adds 16, a struct is
0x1C."""


class PageStretch(msgspec.Struct, frozen=True):
    """Pages of the same rows of one row group.

    bodies: of each column its pages, verified, its dictionary first.
    """

    rows: int
    columns: tuple[ColumnPages, ...]
    bodies: tuple[tuple[bytes, ...], ...]


def decoded(
    elements: Sequence[bytes], paths: Sequence[str], stretches: Sequence[PageStretch]
) -> list[pa.Table]:
    """Return the rows of each stretch.

    elements: of the columns.
    paths: their names.

    Raises:
        NotByPagesError: Arrow cannot decode them.
    """
    file = _file_of(elements, paths, stretches)
    try:
        with pq.ParquetFile(pa.BufferReader(file), pre_buffer=False) as parquet:
            table = parquet.read(use_threads=False)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise NotByPagesError(str(error)) from error
    if len(table) != sum(stretch.rows for stretch in stretches):
        raise NotByPagesError("pages have other rows than the index says")
    tables, at = [], 0
    for stretch in stretches:
        tables.append(table.slice(at, stretch.rows))
        at += stretch.rows
    return tables


def _file_of(
    elements: Sequence[bytes], paths: Sequence[str], stretches: Sequence[PageStretch]
) -> pa.Buffer:
    """Return a Parquet file. Stretches whose pages may stand behind each other are one row group: a
    row group costs Arrow more than a page does."""
    parts: list[bytes] = [MAGIC]
    size = len(MAGIC)
    row_groups = bytearray()
    together = [list(alike) for _, alike in groupby(stretches, _kinds)]
    for alike in together:
        begun, rows = size, sum(stretch.rows for stretch in alike)
        row_groups += bytes([_LIST]) + _list_head(len(paths))
        for index, path in enumerate(paths):
            bodies = [body for stretch in alike for body in stretch.bodies[index]]
            total = sum(map(len, bodies))
            row_groups += _chunk(path, alike[0].columns[index], rows, size, total)
            parts += bodies
            size += total
        row_groups += _number(_I64, size - begun) + _number(_I64, rows) + b"\0"
    tail = b"".join(
        (
            _number(_I32, _VERSION),
            bytes([_LIST]) + _list_head(1 + len(elements)),
            _root(len(elements)),
            *elements,
            _number(_I64, sum(stretch.rows for stretch in stretches)),
            bytes([_LIST]) + _list_head(len(together)),
            row_groups,
            b"\0",
        )
    )
    return pa.py_buffer(b"".join((*parts, tail, len(tail).to_bytes(4, "little"), MAGIC)))


def _kinds(stretch: PageStretch) -> object:
    """Return what stretches have in common whose pages may be of one chunk: how these are stored,
    without dictionaries, of which each has its own."""
    if any(pages.column.dictionary is not None for pages in stretch.columns):
        return id(stretch)
    chunks = [pages.column.chunk for pages in stretch.columns]
    return [(chunk.physical, chunk.codec, chunk.encodings) for chunk in chunks]


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
    """Return the first four fields of a chunk's metadata, which do not describe its pages."""
    fields = Struct(
        {
            1: (I32, physical),
            2: (LIST, ThriftList(I32, list(encodings))),
            3: (LIST, ThriftList(BINARY, [path.encode()])),
            4: (I32, codec),
        }
    )
    return encode_struct(fields)[:-1]


@lru_cache(maxsize=_KEPT_MAX)
def _root(columns: int) -> bytes:
    return encode_struct(Struct({4: (BINARY, b"schema"), 5: (I32, columns)}))


def _number(head: int, value: int) -> bytes:
    return bytes([head]) + zigzag(value)


def _list_head(count: int) -> bytes:
    """Return the head of a list of structs."""
    return bytes([count << 4 | STRUCT]) if count < 15 else bytes([0xF0 | STRUCT]) + varint(count)
