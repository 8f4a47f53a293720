"""A streaming k-way merge of sorted record batches, one window at a time.

The watermark is the smallest last key among the inputs that go on. No row still to come is below
it, so the rows up to it, from all inputs, are a window that can be sorted and passed on. An input
whose lowest key lies above the window is not opened yet.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterator, Sequence

import msgspec
import pyarrow as pa

from lakebed.model.schema import Field
from lakebed.sorted_files.format.key_encoding import encode_row, search
from lakebed.sorted_files.sorting.ordering import sorted_rows

Mask = Callable[[pa.RecordBatch], pa.BooleanArray | None]


class Source(msgspec.Struct, frozen=True):
    """Sorted rows that can be opened when their turn comes.

    lowest: no row's encoded key lies below it.
    look: a better `lowest` at the price of a look into the source; None: there are no rows.
    mask: which rows of a batch that was opened are wanted, None: all of it; only merges by kernels
        take sources that have one.
    """

    lowest: bytes
    open: Callable[[], Iterator[pa.RecordBatch]]
    look: Callable[[], bytes | None] | None = None
    mask: Mask | None = None


Window = list[list[pa.RecordBatch]]
"""Sorted rows of each source."""


def merge(sources: Sequence[Source], fields: Sequence[Field]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of all sources in the order of these key fields.

    Holds at most one and a half batches of each source whose keys meet the window, and three times
    the window: how many bytes that is, the sources decide by the size of their batches.
    """
    if any(source.mask is not None for source in sources):
        raise AssertionError("rows are left out before this merge")
    if len(sources) == 1:
        (only,) = sources
        if only.look is None or only.look() is not None:
            yield from filter(len, only.open())
        return
    for slices in windows(sources, fields):
        yield from _in_order(slices, fields)


def windows(sources: Sequence[Source], fields: Sequence[Field]) -> Iterator[Window]:
    """Yield the rows of all sources window by window. No key in one is below a key in those before;
    one may be in both.

    Holds at most one and a half batches of each source whose keys meet the window.
    """
    waiting = [(source.lowest, index, source) for index, source in enumerate(sources)]
    heapq.heapify(waiting)
    inputs: list[_Input] = []
    while inputs or waiting:
        if not inputs:
            _open_next(waiting, inputs, fields)
        inputs = [i for i in inputs if i.fill()]
        if not inputs:
            continue
        going_on = [i.last for i in inputs if not i.ended]
        top = min(going_on) if going_on else max(i.last for i in inputs)
        if waiting and waiting[0][0] <= top:
            _open_next(waiting, inputs, fields)
            continue
        yield [i.take_up_to(top) if going_on else i.take() for i in inputs]


class _Input:
    """Batches of a source that are read but not passed on."""

    def __init__(self, batches: Iterator[pa.RecordBatch], fields: Sequence[Field]) -> None:
        self._batches = batches
        self._fields = fields
        self._held: deque[pa.RecordBatch] = deque()
        self._rows = 0
        self._rows_low = 0
        self.last = b""
        self.ended = False

    def fill(self) -> bool:
        """Read while fewer rows are held than half a batch. Returns whether any are held."""
        while not self.ended and self._rows <= self._rows_low:
            batch = next(self._batches, None)
            if batch is None:
                self.ended = True
            elif len(batch):
                self._held.append(batch)
                self._rows += len(batch)
                self._rows_low = len(batch) // 2
                self.last = encode_row(batch, self._fields, -1)
        return bool(self._held)

    def take_up_to(self, top: bytes) -> list[pa.RecordBatch]:
        """Remove and return the rows whose key is not above `top`."""
        if self.last <= top:
            return self.take()
        taken = []
        while True:
            batch = self._held[0]
            rows = search(batch, self._fields, top, after=True)
            if rows:
                taken.append(batch.slice(0, rows))
                self._rows -= rows
            if rows < len(batch):
                self._held[0] = batch.slice(rows)
                return taken
            self._held.popleft()

    def take(self) -> list[pa.RecordBatch]:
        """Remove and return all rows that are held."""
        taken = list(self._held)
        self._held.clear()
        self._rows = 0
        return taken


def _open_next(
    waiting: list[tuple[bytes, int, Source]], inputs: list[_Input], fields: Sequence[Field]
) -> None:
    """Open the waiting source with the lowest key, or learn that its key is not that low."""
    lowest, index, source = heapq.heappop(waiting)
    if source.look is not None:
        better = source.look()
        if better is not None:
            seen = Source(max(lowest, better), source.open)
            heapq.heappush(waiting, (seen.lowest, index, seen))
        return
    inputs.append(_Input(source.open(), fields))


def _in_order(slices: Window, fields: Sequence[Field]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of some sorted lists of batches in order. Empties the list of lists."""
    slices[:] = [batches for batches in slices if batches]
    firsts = [encode_row(batches[0], fields, 0) for batches in slices]
    by_first = sorted(range(len(slices)), key=firsts.__getitem__)
    lasts = [encode_row(slices[i][-1], fields, -1) for i in by_first]
    if all(last <= firsts[i] for last, i in zip(lasts, by_first[1:], strict=False)):
        for i in by_first:
            yield from slices[i]
        return
    batches = [batch for some in slices for batch in some]
    slices.clear()
    yield from sorted_rows(batches, fields)
