"""Rows of history, which are few and come one by one, as batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

import pyarrow as pa

ROWS_AT_ONCE = 10_000


def row_batches(rows: Iterable[dict[str, object]], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield rows, so many at once that they take little memory."""
    left = iter(rows)
    while some := list(islice(left, ROWS_AT_ONCE)):
        yield pa.RecordBatch.from_pylist(some, schema=schema)
