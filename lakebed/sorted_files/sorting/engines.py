"""Puts rows in order: by pyarrow and numpy everywhere, or by compiled loops where they pay.

The plain engine says what is right: tests hold the compiled one to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Protocol

import pyarrow as pa

from lakebed.model.schema import Field
from lakebed.sorted_files.format.row_groups import cut
from lakebed.sorted_files.sorting.ordering import sorted_rows
from lakebed.sorted_files.sorting.window_merge import Source, merge

try:
    from lakebed.kernels.toolchain.presence import always, available
except ModuleNotFoundError:  # functions and Spark's jobs carry no kernels: they have no numba

    def always() -> bool:
        return False

    def available() -> bool:
        return False


COMPILED_ROWS_MIN = 1_000_000
"""Fewest rows of a job for kernels: these save twice what loading them takes, once a process."""
COMPILED_BYTES_MIN = 96 * 1024 * 1024
"""Fewest bytes of a job for kernels, where rows are so wide that there are fewer."""
BATCH_ROWS_MAX = 16_384
"""Most rows of a sorted batch by the plain engine."""


class SortedRows(Protocol):
    """Rows in order, batch by batch.

    starts: rows before each batch, and all.
    """

    starts: list[int]

    def batch(self, index: int) -> pa.RecordBatch:
        """Return a batch, perhaps put together now."""
        ...

    def first(self, index: int) -> pa.RecordBatch:
        """Return the first row of a batch."""
        ...


class TakenRows:
    """Rows that were put together in order."""

    def __init__(self, rows: Iterable[pa.RecordBatch], bytes_max: int) -> None:
        self._batches = [part for b in rows for part in cut(b, BATCH_ROWS_MAX, bytes_max)]
        self.starts = [0, *accumulate(map(len, self._batches))]

    def batch(self, index: int) -> pa.RecordBatch:
        return self._batches[index]

    def first(self, index: int) -> pa.RecordBatch:
        return self._batches[index].slice(0, 1)


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
        self, batches: list[pa.RecordBatch], fields: Sequence[Field], bytes_max: int
    ) -> SortedRows:
        """Return the rows of batches that are in no order, in order. Empties the list.

        bytes_max: of each batch, about, unless one row has more. In memory are at most two copies
        of the rows, besides what their owners hold; where this engine sorts at once, one.
        """
        ...

    def sorts_at_once(self, columns: pa.Schema) -> bool:
        """Return whether rows are best sorted all together, and not some megabytes at a time."""
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
        self, batches: list[pa.RecordBatch], fields: Sequence[Field], bytes_max: int
    ) -> SortedRows:
        return TakenRows(sorted_rows(batches, fields), bytes_max)

    def sorts_at_once(self, columns: pa.Schema) -> bool:
        return False


PLAIN = PlainEngine()


def kernels_pay(rows: int, size: int = 0) -> bool:
    """Return whether a job is done by kernels.

    rows, size: of the whole job, about.
    size: bytes.
    """
    is_large = rows >= COMPILED_ROWS_MIN or size >= COMPILED_BYTES_MIN
    return (is_large or always()) and available()


def engine_for(rows: int, size: int = 0) -> Engine:
    """Return who orders the rows of a job, as `kernels_pay` takes them."""
    if not kernels_pay(rows, size):
        return PLAIN
    from lakebed.sorted_files.sorting import compiled_engine  # noqa: PLC0415  loads llvmlite

    return compiled_engine.COMPILED
