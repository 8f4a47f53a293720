"""Who puts rows in order: pyarrow and numpy everywhere, or compiled loops where they pay.

The plain engine says what is right: tests hold the compiled one to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

import pyarrow as pa

from lakebed.kernels.presence import always, available
from lakebed.model.schema import Field
from lakebed.sorted_files.merging import Source, merge
from lakebed.sorted_files.ordering import sorted_rows

COMPILED_ROWS_MIN = 1_000_000
"""Of a whole job: by so many rows kernels save twice what loading them takes, once a process."""


class Engine(Protocol):
    """Puts rows in the order of key fields; the order of rows with equal keys is not promised."""

    def merge(
        self,
        sources: Sequence[Source],
        fields: Sequence[Field],
        folds: Mapping[str, str] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """Yield the rows of sorted sources in order. A source is opened when the merge gets there.

        How much memory that takes the sources decide, by the size of their batches. folds: what is
        done with columns of rows with equal keys, sum, min or max: some of them may be made one.
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
        self,
        sources: Sequence[Source],
        fields: Sequence[Field],
        folds: Mapping[str, str] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        return merge(sources, fields)

    def sort(
        self, batches: list[pa.RecordBatch], fields: Sequence[Field]
    ) -> Iterator[pa.RecordBatch]:
        return sorted_rows(batches, fields)


PLAIN = PlainEngine()


def kernels_pay(rows: int) -> bool:
    """Whether a job is done by kernels. rows: of the whole job, about."""
    return (rows >= COMPILED_ROWS_MIN or always()) and available()


def engine_for(rows: int) -> Engine:
    """Return who orders the rows of a job. rows: of the whole job, about."""
    if not kernels_pay(rows):
        return PLAIN
    from lakebed.sorted_files.compiled_engine import COMPILED  # noqa: PLC0415  loads llvmlite

    return COMPILED
