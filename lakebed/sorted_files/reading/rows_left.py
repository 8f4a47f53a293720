"""Sorted rows without those that are to be deleted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakebed.sorted_files.reading.conditions import RowFilter

_INDEX = "_lakebed_index"
"""No field has a name that begins so."""


def rows_left(
    batches: Iterable[pa.RecordBatch], gone: RowFilter, stays: str | None
) -> Iterator[pa.RecordBatch]:
    """Yield sorted rows without those that a filter wants: just those that a query would give.

    stays: a field of booleans; rows in which it is true stay. None: there is none.
    """
    for batch in batches:
        left = np.ones(len(batch), bool)
        numbered = batch.append_column(_INDEX, pa.array(np.arange(len(batch))))
        for some in gone.apply(numbered):
            left[some.column(_INDEX).to_numpy()] = False
        if stays is not None:
            is_true = pc.fill_null(batch.column(stays), fill_value=False)
            left |= is_true.to_numpy(zero_copy_only=False)
        if left.all():
            yield batch
        elif left.any():
            yield batch.filter(pa.array(left))
