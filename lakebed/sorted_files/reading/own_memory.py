"""Few rows of many do not keep the memory of all."""

from __future__ import annotations

import pyarrow as pa

COPIED_FROM_BYTES = 1 << 16
"""Fewest bytes of buffers that a batch keeps, if it is to be copied: less is not worth a look."""
KEPT_FRACTION = 4


def own_memory(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch that keeps at most four times the memory of its rows: a copy, where it is a
    slice of more. For rows that their receiver may keep."""
    kept = batch.get_total_buffer_size()
    if kept < COPIED_FROM_BYTES or KEPT_FRACTION * batch.nbytes >= kept:
        return batch
    return pa.concat_batches([batch])
