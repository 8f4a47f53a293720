"""Sorted rows without those that are to be deleted, or just those."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.sorted_files.reading.conditions import RowFilter

_INDEX = "_lakebed_index"
"""No field has a name that begins so."""


class Judged:
    """The rows of sorted batches that go: just those that a query would give.

    gone: wants them.
    stays: a field of booleans; rows in which it is true stay. None: there is none.
    """

    def __init__(self, gone: RowFilter, stays: str | None) -> None:
        self._gone = gone
        self._stays = stays

    def left(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows that stay."""
        for batch in batches:
            yield from _those(batch, ~self._mask(batch))

    def taken(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows that go."""
        for batch in batches:
            yield from _those(batch, self._mask(batch))

    def _mask(self, batch: pa.RecordBatch) -> npt.NDArray[np.bool_]:
        goes = np.zeros(len(batch), bool)
        numbered = batch.append_column(_INDEX, pa.array(np.arange(len(batch))))
        for some in self._gone.apply(numbered):
            goes[some.column(_INDEX).to_numpy()] = True
        if self._stays is not None:
            is_true = pc.fill_null(batch.column(self._stays), fill_value=False)
            goes &= ~is_true.to_numpy(zero_copy_only=False)
        return goes


def _those(batch: pa.RecordBatch, wanted: npt.NDArray[np.bool_]) -> Iterator[pa.RecordBatch]:
    if wanted.all():
        yield batch
    elif wanted.any():
        yield batch.filter(pa.array(wanted))
