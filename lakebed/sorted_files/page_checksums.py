"""CRC-32s of pages, header and body, taken while a file is written and kept in its tail.

A page that is read alone is what was written, as sure as a block is: the tail, which the CRC-32 in
the state covers, says where it lies, which rows it holds, and what its own CRC-32 is. Neither does
a header pass that says something else, nor another page in its place, of this file or another: the
checksum in a page's own header would let the second pass, and leaves out the header.
"""

from __future__ import annotations

import struct

from lakebed.parquet_bytes.encoded import EncodedChunk, EncodedRowGroup
from lakebed.sorted_files.file_notes import block_checksum

DICTIONARY_PAGE_OFFSET = 11
"""Of a column chunk's metadata: set where it begins with a dictionary."""


def page_checksums(group: EncodedRowGroup) -> bytes:
    """Return four bytes for each page of a row group, in the order in which they lie, dictionaries
    among them; b"" if it does not say where its pages are."""
    found = bytearray()
    for chunk in group.chunks:
        if chunk.pages is None:
            return b""
        whole = chunk.pieces[0] if len(chunk.pieces) == 1 else b"".join(chunk.pieces)
        raw = memoryview(whole).cast("B")
        for start, end in _pages(chunk):
            found += struct.pack(">I", block_checksum(raw[start:end]))
    return bytes(found)


def _pages(chunk: EncodedChunk) -> list[tuple[int, int]]:
    assert chunk.pages is not None, "its pages are known"
    offsets, sizes = chunk.pages.offsets, chunk.pages.sizes
    spans = [(at, at + size) for at, size in zip(offsets, sizes, strict=True)]
    has_dictionary = DICTIONARY_PAGE_OFFSET in chunk.metadata
    return [(0, offsets[0]), *spans] if has_dictionary and offsets else spans
