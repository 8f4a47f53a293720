"""CRC-32s of pages, header and body, taken while a file is written and kept in its tail.

A page that is read alone is what was written, as sure as a block is: the tail, which the CRC-32 in
the state covers, says where it lies, which rows it holds, and what its own CRC-32 is. Neither does
a header pass that says something else, nor a page swapped for it, of this file or another: the
checksum in a page's own header would let the second pass, and leaves out the header.
"""

from __future__ import annotations

import numpy as np

from lakebed.parquet_bytes.encoded import EncodedChunk, EncodedRowGroup
from lakebed.sorted_files.format.file_notes import block_checksum

DICTIONARY_PAGE_OFFSET = 11
"""Field of a column chunk's metadata: set where the chunk begins with a dictionary."""


def page_checksums(row_group: EncodedRowGroup) -> bytes:
    """Return four bytes for each page of a row group, in the order in which they lie, dictionaries
    among them; b"" if it does not say where its pages are."""
    found = []
    for chunk in row_group.chunks:
        if chunk.pages is None:
            return b""
        taken = chunk.checksums
        if taken is None:
            taken = np.array([block_checksum(chunk.raw[a:b]) for a, b in _pages(chunk)], np.int64)
        found.append(taken.astype(">u4").tobytes())
    return b"".join(found)


def _pages(chunk: EncodedChunk) -> list[tuple[int, int]]:
    assert chunk.pages is not None, "its pages are known"
    offsets, sizes = chunk.pages.offsets.tolist(), chunk.pages.sizes.tolist()
    spans = [(at, at + size) for at, size in zip(offsets, sizes, strict=True)]
    has_dictionary = DICTIONARY_PAGE_OFFSET in chunk.metadata
    return [(0, offsets[0]), *spans] if has_dictionary and offsets else spans
