"""Rows with equal keys become one row for each group, where groups age (`model/group_ages.py`).

The last key of a window is held back: the next window may hold more of it, one row for each step
that its rows lie in.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from lakebed.model.group_ages import GroupAges
from lakebed.processing.row_merging import MergeRows, group_starts
from lakebed.processing.value_order import Indices, Numbers, index_array, integers_of


class AgingGroups:
    """keys: names of key fields. merge: makes one row of some."""

    def __init__(self, ages: GroupAges, keys: Sequence[str], merge: MergeRows) -> None:
        self._ages = ages
        self._keys = keys
        self._merge = merge

    def merged(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield what becomes of rows that are sorted by their keys; equal ones may straddle
        batches, in any order."""
        held: pa.RecordBatch | None = None
        for batch in batches:
            if not len(batch):
                continue
            rows = self._by_step(batch if held is None else pa.concat_batches([held, batch]))
            last = int(self._starts(rows)[-1])
            if last:
                yield self._finished(rows.slice(0, last))
            held = rows.take(index_array(np.arange(last, len(rows))))
        if held is not None:
            yield self._finished(held)

    def _by_step(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return one row for each step of a key, in order."""
        keys, steps = self._key_numbers(rows), self._steps(rows)
        order = np.lexsort((steps, keys))
        if (np.diff(order) < 0).any():
            rows, keys, steps = rows.take(index_array(order)), keys[order], steps[order]
        return self._folded(rows, (np.diff(keys) != 0) | (np.diff(steps) != 0))

    def _finished(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return what becomes of all rows of some keys, one for each step."""
        ages = self._ages
        if not ages.is_query and not ages.is_whole:
            return rows
        keys, steps = self._key_numbers(rows), self._steps(rows)
        is_new = (np.diff(keys) != 0) | (np.diff(steps) > 1)
        if ages.is_query:
            groups = self._folded(rows, is_new)
            shown = groups.filter(pa.array(self._times(groups) >= ages.limit))
            return self._folded(shown, np.diff(self._key_numbers(shown)) != 0)
        groups = self._folded(rows, is_new | (steps[1:] > ages.last))
        return groups.filter(pa.array(self._steps(groups) >= ages.oldest))

    def _folded(self, rows: pa.RecordBatch, is_new: np.ndarray) -> pa.RecordBatch:
        """Return one row of neighbours. is_new: of all rows but the first."""
        if not len(rows) or is_new.all():
            return rows
        return self._merge(rows, np.concatenate([[0], 1 + np.flatnonzero(is_new)]))

    def _starts(self, rows: pa.RecordBatch) -> Indices:
        return group_starts([rows.column(name) for name in self._keys])

    def _key_numbers(self, rows: pa.RecordBatch) -> Numbers:
        """Return for each row which key it has, counted from 0."""
        starts = self._starts(rows)
        return np.repeat(np.arange(len(starts)), np.diff(starts, append=len(rows)))

    def _times(self, rows: pa.RecordBatch) -> Numbers:
        return integers_of(rows.column(self._ages.field))

    def _steps(self, rows: pa.RecordBatch) -> Numbers:
        return self._times(rows) // self._ages.step
