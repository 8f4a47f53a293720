"""A merge whose range of keys is cut, so that several threads merge its parts at the same time.

Files are read in pieces that end where pages end. The smallest last key of the pieces at hand is
where a cut lies: what is still to come lies at or above it. What lies up to it is a part, which one
thread merges while others merge the parts behind it; they are passed on in order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from functools import partial
from typing import NamedTuple

import pyarrow as pa

from lakebed.model.schema import Field
from lakebed.sorted_files.merging import Source, Window, windows
from lakebed.sorted_files.workers import Workers

PART_ROWS = 16_384
"""A part has so many rows at least, where there are as many, and they are not wide."""

Merge = Callable[[Sequence[Source]], Iterator[pa.RecordBatch]]


class _Part(NamedTuple):
    """Rows that are being merged. size: their bytes."""

    size: int
    merged: Future[list[pa.RecordBatch]]


def merged_by_workers(
    sources: Sequence[Source],
    fields: Sequence[Field],
    merge: Merge,
    workers: Workers,
    *,
    bytes_max: int,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of all sources in the order of these key fields.

    merge: what is done with a part; rows of one key may be in two, one behind the other. bytes_max:
    of parts that are merged or wait to be passed on, unless one alone has more. In memory is that
    twice, and what `windows` holds.
    """
    parts: deque[_Part] = deque()
    each = bytes_max // (workers.count + 1)
    for rows, size in _parts(windows(sources, fields), each):
        while parts and (
            len(parts) > workers.count or size + sum(part.size for part in parts) > bytes_max
        ):
            yield from _emptied(parts.popleft().merged.result())
        parts.append(_Part(size, workers.start(_merged, merge, rows)))
    while parts:
        yield from _emptied(parts.popleft().merged.result())


def _parts(found: Iterator[Window], bytes_min: int) -> Iterator[tuple[Window, int]]:
    """Yield windows and their bytes, small ones together until they have enough rows or bytes."""
    part: Window = []
    rows = size = 0
    for window in found:
        part += window
        rows += sum(len(batch) for batches in window for batch in batches)
        size += sum(batch.nbytes for batches in window for batch in batches)
        if rows >= PART_ROWS or size >= bytes_min:
            yield part, size
            part, rows, size = [], 0, 0
    if rows:
        yield part, size


def _merged(merge: Merge, part: Window) -> list[pa.RecordBatch]:
    sources = [Source(b"", partial(_emptied, batches)) for batches in part if batches]
    return list(merge(sources))


def _emptied(batches: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield batches, which are not held any longer."""
    while batches:
        yield batches.pop(0)
