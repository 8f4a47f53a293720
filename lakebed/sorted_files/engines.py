"""Who puts rows in order: pyarrow and numpy everywhere, or compiled loops where they pay.

The plain engine says what is right: tests hold the compiled one to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa

from lakebed.kernels.presence import available
from lakebed.model.schema import Field
from lakebed.sorted_files.ordering import sorted_order

COMPILED_ROWS_MIN = 20_000_000
"""Of a whole job. Loading numba and its kernels, once a process, takes as long as they save on ten
million rows, and 90 MiB."""


class Engine(Protocol):
    """Puts rows in the order of key fields; the order of rows with equal keys is not promised."""

    def merge(
        self, runs: list[list[pa.RecordBatch]], fields: Sequence[Field]
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of sorted lists of batches, none empty, in order. Empties `runs`.

        In memory are at most two copies of the rows, besides what others hold.
        """
        ...

    def sort(
        self, batches: list[pa.RecordBatch], fields: Sequence[Field]
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of batches that are in no order, in order. Empties the list.

        In memory are at most two copies of the rows, besides what others hold.
        """
        ...


class PlainEngine:
    """Sorts by numpy, gathers by one `take`."""

    def merge(
        self, runs: list[list[pa.RecordBatch]], fields: Sequence[Field]
    ) -> Iterator[pa.RecordBatch]:
        batches = [batch for run in runs for batch in run]
        runs.clear()
        return self.sort(batches, fields)

    def sort(
        self, batches: list[pa.RecordBatch], fields: Sequence[Field]
    ) -> Iterator[pa.RecordBatch]:
        table = pa.Table.from_batches(batches)
        batches.clear()
        keys = table.select([field.name for field in fields]).combine_chunks()
        order = sorted_order([column.chunk(0) for column in keys.columns])
        yield from table.take(pa.array(order, _index_type(len(order)))).to_batches()


PLAIN = PlainEngine()


def kernels_pay(rows: int) -> bool:
    """Whether a job is done by kernels. rows: of the whole job, about."""
    return rows >= COMPILED_ROWS_MIN and available()


def engine_for(rows: int) -> Engine:
    """Return who orders the rows of a job. rows: of the whole job, about."""
    if not kernels_pay(rows):
        return PLAIN
    from lakebed.sorted_files.compiled_engine import COMPILED  # noqa: PLC0415  loads numba

    return COMPILED


def _index_type(rows: int) -> pa.DataType:
    return pa.int32() if rows <= np.iinfo(np.int32).max else pa.int64()
