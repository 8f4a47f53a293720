"""Row groups as bytes, apart from any file: made by an encoder, or taken out of a stored file.

    chunks = chunks_of(footer, row_group=3, pages=bytes_from_the_first_chunk_on, at=their_offset)
    row_group = EncodedRowGroup(rows, chunks)      # or one that an encoder gave
    assembly.add(row_group)                        # `assembling.Assembly`, in key order

Nothing in them knows where it will lie: offsets count from a chunk's first byte. So row groups can
be encoded by several threads, or copied undecoded, and joined into one file.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from lakebed.parquet_bytes.footer import Chunk, Footer, RowGroup
from lakebed.parquet_bytes.page_index import EncodedPages, pages_of
from lakebed.parquet_bytes.thrift import I64, LIST, STRUCT, MalformedError, Struct, ThriftList
from lakebed.parquet_bytes.usual_pages import usual_pages
from lakebed.parquet_bytes.varints import Numbers

OFFSET_FIELDS = (9, 10, 11)
"""Fields of a chunk's metadata: where data pages, an index page, a dictionary page begin."""
_BLOOM_FIELDS = (14, 15)


class EncodedChunk(msgspec.Struct, frozen=True, eq=False, array_like=True):
    """A column chunk.

    raw: its bytes.
    metadata: Parquet's ColumnMetaData, its offsets counted from the chunk's first byte.
    pages: if known.
    checksums: CRC-32s of all pages, headers included, if known.
    bounds: its ColumnIndex as it is stored.
    """

    metadata: Struct
    raw: memoryview
    pages: EncodedPages | None
    checksums: Numbers | None
    bounds: bytes | None

    @property
    def size(self) -> int:
        """Return how many bytes it has in a file."""
        return len(self.raw)

    @property
    def bytes_count(self) -> int:
        """Return how many bytes it would have without compression."""
        count: int = self.metadata.need(6, I64)
        return count


class EncodedRowGroup(msgspec.Struct, frozen=True, array_like=True):
    """A row group.

    chunks: one for each column of the schema, in its order.
    """

    rows: int
    chunks: Sequence[EncodedChunk]

    @property
    def size(self) -> int:
        """Return how many bytes it has in a file."""
        return sum(chunk.size for chunk in self.chunks)


def chunks_of(footer: Footer, row_group: int, pages: memoryview, at: int) -> list[EncodedChunk]:
    """Return the chunks of a stored row group. pages: bytes of the file from `at` on, at least
    those of the row group.

    Raises:
        MalformedError: the footer or a page index contradicts itself.
    """
    fields_of_row_group = footer.row_group_fields(row_group)
    found = footer.row_group_of(fields_of_row_group)
    stored: list[Struct] = fields_of_row_group.listed(1, STRUCT) or []
    chunks = []
    for chunk, fields in zip(found.chunks, stored, strict=True):
        if chunk.start < at or chunk.end > at + len(pages):
            raise MalformedError("a column chunk does not lie in these bytes")
        piece = pages[chunk.start - at : chunk.end - at]
        chunks.append(
            EncodedChunk(
                _metadata(fields, chunk.start),
                piece,
                _pages(footer, found, chunk),
                None,
                _bounds(footer, chunk),
            )
        )
    return chunks


def _metadata(stored: Struct, start: int) -> Struct:
    metadata = shifted(stored.need(3, STRUCT), -start)
    for field in _BLOOM_FIELDS:  # the filter lies in another part of the file, and stays there
        metadata.pop(field, None)
    return metadata


def _pages(footer: Footer, row_group: RowGroup, chunk: Chunk) -> EncodedPages | None:
    """Return where pages are in the chunk, and bytes of their strings."""
    if chunk.offset_index is not None:
        start, end = (offset - footer.tail_offset for offset in chunk.offset_index)
        usual = usual_pages(footer.tail[start:end], chunk.start, chunk.end, row_group.rows)
        if usual is not None:
            return usual
    pages = pages_of(footer, row_group, chunk)
    if pages is None:
        return None
    return EncodedPages(
        np.array(pages.offsets, np.int64) - chunk.start,
        np.array(pages.sizes, np.int64),
        np.array(pages.first_rows, np.int64),
        None if pages.byte_counts is None else np.array(pages.byte_counts, np.int64),
    )


def _bounds(footer: Footer, chunk: Chunk) -> bytes | None:
    if chunk.column_index is None:
        return None
    start, end = (offset - footer.tail_offset for offset in chunk.column_index)
    return footer.tail[start:end]


def shifted(metadata: Struct, offset: int) -> Struct:
    """Return a chunk's metadata for a chunk that begins at this offset of its file."""
    moved = Struct(metadata)
    for field in OFFSET_FIELDS:
        if field in moved:
            moved[field] = (I64, moved.need(field, I64) + offset)
    return moved


def listed(kind: int, values: Sequence[object]) -> tuple[int, ThriftList]:
    """Return a field that lists these values."""
    return LIST, ThriftList(kind, list(values))
