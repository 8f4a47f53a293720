"""A streaming k-way merge of sorted record batches by kernels, without windows.

Each open source has one batch at hand. The kernel writes down which row of which batch comes next
until one batch is used up; then its next batch is read and the kernel called again. When as many
rows are written down as a row group has, they are copied together, once, into the batch passed on.
Batches that are used up are kept until then.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from lakebed.kernels.keys import Keys
from lakebed.kernels.merging import Cursors, Order, merge_rows
from lakebed.model.schema import Field
from lakebed.sorted_files.format.key_encoding import encode_row
from lakebed.sorted_files.format.row_groups import ROW_GROUP_BYTES_MAX, ROW_GROUP_ROWS_MAX
from lakebed.sorted_files.sorting.compiled_folding import Folds, can_fold, folded
from lakebed.sorted_files.sorting.gathered_rows import Span, addresses_of, gathered, kept, kind_of
from lakebed.sorted_files.sorting.window_merge import Mask, Source

HELD_BATCHES_MAX = 4096
MASKED_MIN = 0.5
"""Smallest share of a batch's rows that are wanted, if the batch is masked. Fewer are copied, and
the batch is freed at once."""


class CompiledMerge:
    """One merge. rows_max, bytes_max: of a batch that is passed on, about.

    folds: what may be done with the other columns of rows with equal keys; not all are made one.
    """

    def __init__(
        self,
        sources: Sequence[Source],
        fields: Sequence[Field],
        *,
        rows_max: int = ROW_GROUP_ROWS_MAX,
        bytes_max: int = ROW_GROUP_BYTES_MAX,
        folds: Folds | None = None,
    ) -> None:
        self._fields = fields
        self._folds = folds
        self._waiting = [(source.lowest, index, source) for index, source in enumerate(sources)]
        heapq.heapify(self._waiting)
        self._opened: list[_Opened] = []
        self._rows_max = self._rows_here = rows_max
        self._bytes_max = bytes_max
        self._held = _HeldBatches(fields)
        self._order = Order(np.empty(rows_max, np.uint16), np.empty(rows_max, np.int32))
        self._filled = 0

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows of all sources in order.

        In memory are a batch of each open source, those used up for the rows not yet passed on,
        and these rows once more while they are passed on.
        """
        while self._opened or self._waiting:
            if not self._fill():
                continue
            if len(self._opened) == 1:
                yield from self._flushed()
                yield self._opened[0].rest()
                continue
            if self._filled < self._rows_here:
                self._merge()
            if (
                self._filled >= self._rows_here
                or len(self._held.batches) >= HELD_BATCHES_MAX
                or self._held.size > 2 * self._bytes_max + self._held.current
            ):
                yield from self._flushed()
        yield from self._flushed()

    def _fill(self) -> bool:
        """Give each open source a batch with rows, open what may come next. False: look again."""
        for opened in self._opened:
            if opened.row == opened.end and opened.read():
                self._hold(opened)
        self._opened = [opened for opened in self._opened if opened.row < opened.end]
        if self._waiting and (
            not self._opened
            or self._waiting[0][0] <= min(opened.last_key(self._fields) for opened in self._opened)
        ):
            self._open_next()
            return False
        return bool(self._opened)

    def _open_next(self) -> None:
        """Open the waiting source with the lowest key, or learn that its key is not that low."""
        lowest, index, source = heapq.heappop(self._waiting)
        if source.look is None:
            self._opened.append(_Opened(index, source.open(), source.mask))
            self._opened.sort(key=lambda opened: opened.index)
        elif (better := source.look()) is not None:
            seen = Source(max(lowest, better), source.open, mask=source.mask)
            heapq.heappush(self._waiting, (seen.lowest, index, seen))

    def _hold(self, opened: _Opened) -> None:
        assert opened.batch is not None, "an open source has a batch while it has rows"
        opened.segment = self._held.add(opened.batch, opened.mask, opened.row, opened.size)
        width = max(1, opened.size // opened.end)
        self._rows_here = min(self._rows_here, max(1, self._bytes_max // width))

    def _merge(self) -> None:
        leaves = 1 << (len(self._opened) - 1).bit_length()
        numbers = np.zeros((3, leaves), np.int64)
        for index, opened in enumerate(self._opened):
            numbers[:, index] = opened.segment, opened.row, opened.end
        held, cursors = self._held, Cursors(*numbers)
        self._filled = merge_rows(
            held.keys, held.masks, cursors, self._filled, self._rows_here, self._order
        )
        for opened, row in zip(self._opened, cursors.rows.tolist(), strict=False):
            opened.row = row
            held.wanted_to[opened.segment] = row

    def _flushed(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows that are written down; forget the batches that are used up."""
        held, count, self._filled = self._held, self._filled, 0
        self._held = _HeldBatches(self._fields)
        self._rows_here = self._rows_max
        for opened in self._opened:
            if opened.row < opened.end:
                self._hold(opened)
        self._held.current = self._held.size
        if not count:
            return
        spans = list(zip(held.wanted_from, held.wanted_to, strict=True))
        rows = self._put_together(held, spans, count)
        del held  # while these rows are used, those that they were copied from are not needed
        while rows:
            yield rows.pop(0)

    def _put_together(
        self, held: _HeldBatches, spans: Sequence[Span], count: int
    ) -> list[pa.RecordBatch]:
        """Return the rows that are written down, or what becomes of them."""
        order = Order(self._order.segments[:count], self._order.rows[:count])
        names = [field.name for field in self._fields]
        if self._folds is not None and can_fold(held.batches[0].schema, names, self._folds):
            rows = folded(held.batches, spans, order, held.keys, names=names, folds=self._folds)
            if rows is not None:
                return [rows]
        return list(gathered(held.batches, spans, *order))


class _Opened:
    """A source that is open. row, end: of its batch, the next row and the one behind the last;
    mask: which rows between them are wanted, None: all; size: its bytes."""

    def __init__(self, index: int, batches: Iterator[pa.RecordBatch], mask: Mask | None) -> None:
        self.index = index
        self.batch: pa.RecordBatch | None = None
        self.mask: pa.BooleanArray | None = None
        self.segment = self.row = self.end = self.size = 0
        self._batches = batches
        self._mask_of = mask
        self._last: bytes | None = None

    def read(self) -> bool:
        """Go on to the next batch that has rows; False: there is none."""
        self.batch = self._last = None
        self.row = self.end = 0
        for batch in self._batches:
            self._take(batch)
            if self.row < self.end:
                return True
        return False

    def _take(self, batch: pa.RecordBatch) -> None:
        mask = None if self._mask_of is None or not len(batch) else self._mask_of(batch)
        if mask is not None and (mask.offset or mask.true_count < MASKED_MIN * len(batch)):
            batch, mask = kept(batch, mask), None
        self.batch, self.mask, self.size = batch, mask, batch.nbytes
        self.row, self.end = 0, len(batch)
        if mask is not None:
            bits = np.frombuffer(mask.buffers()[1], np.uint8)
            wanted = np.unpackbits(bits, count=len(mask), bitorder="little")
            self.row = int(wanted.argmax())
            self.end -= int(wanted[::-1].argmax())

    def rest(self) -> pa.RecordBatch:
        """Return the rows of the batch that were not merged, and go behind them."""
        assert self.batch is not None, "an open source has a batch while it has rows"
        count = self.end - self.row
        rest = self.batch.slice(self.row, count)
        if self.mask is not None:
            rest = kept(rest, self.mask.slice(self.row, count))
        self.row = self.end
        return rest

    def last_key(self, fields: Sequence[Field]) -> bytes:
        """Return the encoded key of the batch's last row."""
        if self._last is None:
            assert self.batch is not None, "an open source has a batch while it has rows"
            self._last = encode_row(self.batch, fields, self.end - 1)
        return self._last


class _HeldBatches:
    """Batches whose rows are being merged, and where their keys are, as `kernels.keys` takes them.

    wanted_from, wanted_to: the rows of each that are passed on. size: bytes of all; current: of
    those that were held from the beginning.
    """

    def __init__(self, fields: Sequence[Field]) -> None:
        self._fields = fields
        self.batches: list[pa.RecordBatch] = []
        self._masks: list[pa.BooleanArray | None] = []  # whose bits are read at their addresses
        self.wanted_from: list[int] = []
        self.wanted_to: list[int] = []
        self.size = 0
        self.current = 0
        addresses = np.zeros((2, len(fields), 64), np.int64)
        self.keys = Keys(np.empty(0, np.int64), *addresses)
        self.masks = np.zeros(64, np.int64)

    def add(self, batch: pa.RecordBatch, mask: pa.BooleanArray | None, row: int, size: int) -> int:
        """Hold a batch from a row on; return its number."""
        number = len(self.batches)
        if number == len(self.masks):
            known, *addresses = self.keys
            self.keys = Keys(known, *(np.hstack([at, np.zeros_like(at)]) for at in addresses))
            self.masks = np.hstack([self.masks, np.zeros_like(self.masks)])
        columns = [batch.column(field.name) for field in self._fields]
        kinds = [kind_of(column.type) for column in columns]
        if not number:
            self.keys = self.keys._replace(kinds=np.array(kinds, np.int64))
        for index, (column, kind) in enumerate(zip(columns, kinds, strict=True)):
            assert kind is not None, "keys are of types that kernels know"
            values, bytes_ = addresses_of(column, kind)
            self.keys.values[index, number] = values
            self.keys.bytes_[index, number] = bytes_
        self.masks[number] = 0 if mask is None else mask.buffers()[1].address
        self._masks.append(mask)
        self.batches.append(batch)
        self.wanted_from.append(row)
        self.wanted_to.append(row)
        self.size += size
        return number
