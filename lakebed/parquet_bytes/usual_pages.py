"""OffsetIndexes as writers usually write them, read at once: far faster than by `thrift`."""

from __future__ import annotations

import numpy as np

from lakebed.parquet_bytes.page_index import EncodedPages
from lakebed.parquet_bytes.thrift import I64, LIST, STRUCT, MalformedError, Reader
from lakebed.parquet_bytes.varints import Numbers, unpacked

_PAGE = np.array((0x16, 0x15, 0x16, 0))
"""Heads of a PageLocation's fields, each before a number, and its end."""
_FIELDS = 7


def usual_pages(raw: bytes, start: int, end: int, rows: int) -> EncodedPages | None:
    """Return the OffsetIndex of a chunk in `[start, end)` of its file that has so many rows.

    None: something is unusual or wrong, and `page_index` tells what.
    """
    reader = Reader(raw)
    try:
        if reader.field(0) != (1, LIST):
            return None
        kind, count = reader.list_head()
        numbers, ends = unpacked(raw[reader.at :])
        pages = numbers[: _FIELDS * count].reshape(-1, _FIELDS) if kind == STRUCT else None
        if pages is None or not count or len(pages) != count:
            return None
        counts = _byte_counts(raw, reader.at + int(ends[_FIELDS * count - 1]))
    except (MalformedError, ValueError):
        return None
    offsets, sizes, first_rows = pages[:, 1] >> 1, pages[:, 3] >> 1, pages[:, 5] >> 1
    is_right = (
        not (pages[:, 0::2] != _PAGE).any()
        and not (pages[:, 1::2] & 1).any()  # no number is negative
        and offsets[0] >= start
        and sizes.min() > 0
        and not (offsets[1:] < (offsets + sizes)[:-1]).any()
        and offsets[-1] + sizes[-1] <= end
        and first_rows[0] == 0
        and first_rows[-1] < max(1, rows)
        and not (first_rows[1:] <= first_rows[:-1]).any()
        and (counts is None or len(counts) == count)
    )
    return EncodedPages(offsets - start, sizes, first_rows, counts) if is_right else None


def _byte_counts(raw: bytes, at: int) -> Numbers | None:
    """Return the second list of an OffsetIndex, if it has one.

    Raises:
        MalformedError: something else is there.
    """
    reader = Reader(raw, at)
    field, kind = reader.field(1)
    counts = None
    if (field, kind) == (2, LIST):
        kind, count = reader.list_head()
        numbers, ends = unpacked(raw[reader.at :])
        if kind != I64 or not 0 < count <= len(numbers) or (numbers[:count] & 1).any():
            raise MalformedError("unusual counts of bytes")
        counts = numbers[:count] >> 1
        reader = Reader(raw, reader.at + int(ends[count - 1]))
        field, kind = reader.field(2)
    if kind or reader.at != len(raw):
        raise MalformedError("an unusual field")
    return counts
