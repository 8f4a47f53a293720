"""The door between rows and files. Services pass batches on and never look inside them.

`lakebed.sorted_files` keeps them as Arrow record batches in Parquet files; the simulation keeps
them as lists of tuples. Both pass `tests/contracts/test_sorted_files.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol, TypeVar

import msgspec

from lakebed.model.files import FilePart, KeyBounds, StoredFile
from lakebed.model.names import FileName
from lakebed.model.ranges import Box, KeyRange
from lakebed.model.samples import Sample
from lakebed.model.schema import Schema

BatchT = TypeVar("BatchT")


class RowsWritten(msgspec.Struct, frozen=True):
    """Exact rows of a file inside one region, and the bounds of their keys."""

    rows: int
    bounds: KeyBounds


class FileWritten(msgspec.Struct, frozen=True):
    """A file that was put. regions: for each region asked for, its rows; None: it has none
    there."""

    file: StoredFile
    regions: tuple[RowsWritten | None, ...]


class Condition(msgspec.Struct, frozen=True):
    """Which rows and columns to read: rows in any of the boxes. columns: None for all."""

    boxes: tuple[Box, ...]
    columns: tuple[str, ...] | None = None


class RowSorter(Protocol[BatchT]):
    """Sorts any number of rows in bounded memory, spilling to local disk. Closes itself in
    `with`."""

    def add(self, batch: BatchT) -> None:
        """Take rows in any order, already of the table's schema.

        Raises:
            InvalidError: a key is null or too long.
            StorageFullError: no room to spill.
        """
        ...

    def rows_in(self, regions: Sequence[KeyRange]) -> list[int]:
        """Return how many rows were added in each region. Exact."""
        ...

    def sorted_batches(self, region: KeyRange) -> Iterator[BatchT]:
        """Yield the rows of a region in key order."""
        ...

    def close(self) -> None:
        """Remove what was spilled."""
        ...


class SortedFiles(Protocol[BatchT]):
    """Writes, reads and merges files of sorted rows."""

    def sorter(self, schema: Schema) -> RowSorter[BatchT]:
        """Return a new, empty sorter."""
        ...

    def write(
        self,
        schema: Schema,
        batches: Iterable[BatchT],
        *,
        name: FileName,
        path: str,
        regions: Sequence[KeyRange],
    ) -> FileWritten | None:
        """Put one file of sorted rows at `path`; None, and no object, when there are no rows.

        regions: ascending, hold every row. The file exists when this returns: its PUT was
        acknowledged, or read back (protocol H25).

        Raises:
            ObjectExistsError: another object has the path.
            UnknownOutcomeError, UnavailableError, StorageFullError: nothing refers to it; leave it.
        """
        ...

    def merge(
        self, schema: Schema, parts: Sequence[FilePart], condition: Condition | None = None
    ) -> Iterator[BatchT]:
        """Yield rows of all parts in the order of their keys, each part only inside its region.

        Raises:
            ObjectMissingError: a file is not there: read the state again to learn whether it
            should. CorruptError: its bytes contradict its reference, a checksum or the schema.
        """
        ...

    def sample(self, schema: Schema, part: FilePart) -> Sample:
        """Return the sample of a file, inside the part's region. Reads the tail only."""
        ...

    def measure(
        self, schema: Schema, part: FilePart, regions: Sequence[KeyRange]
    ) -> tuple[RowsWritten | None, ...]:
        """Read every row of a file; return what lies in each region, as `write` did. For
        inspection: it believes nothing that the file or its reference says.

        regions: ascending, hold every key.

        Raises:
            ObjectMissingError: the file is not there.
            CorruptError: as `merge`, or rows out of order, or a sample that is not of its rows.
        """
        ...

    def rows(self, batch: BatchT) -> int:
        """Return how many rows a batch has."""
        ...

    def head(self, batch: BatchT, rows: int) -> BatchT:
        """Return the first rows of a batch."""
        ...
