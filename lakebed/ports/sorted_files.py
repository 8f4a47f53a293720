"""The door between rows and files. Services pass batches on and never look inside them.

`lakebed.sorted_files` keeps them as Arrow record batches in Parquet files; the simulation keeps
them as lists of tuples. Both pass `tests/contracts/test_sorted_files.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol, TypeVar

import msgspec

from lakebed.errors import QueryTooLargeError
from lakebed.model.files import FilePart, KeyBounds, StoredFile
from lakebed.model.names import FileName
from lakebed.model.processing import IteratorUse, ProcessingPass
from lakebed.model.ranges import Box, KeyRange
from lakebed.model.samples import Sample
from lakebed.model.schema import Schema

BatchT = TypeVar("BatchT")


class RowsWritten(msgspec.Struct, frozen=True):
    """Exact rows of a file inside one key range, and the bounds of their keys."""

    rows: int
    bounds: KeyBounds


class FileWritten(msgspec.Struct, frozen=True):
    """A file that was put.

    key_ranges: for each key range asked for, its rows; None: it has none there.
    """

    file: StoredFile
    key_ranges: tuple[RowsWritten | None, ...]


class Selection(msgspec.Struct, frozen=True):
    """The rows and columns to read: rows in any of the boxes.

    columns: None for all.
    where: a test of these files' own, which keeps some of the rows; None: all.
    reach: boxes that hold all rows of `boxes` which the test keeps, and perhaps others; None: it
        says nothing of keys.
    """

    boxes: tuple[Box, ...]
    columns: tuple[str, ...] | None = None
    where: object = None
    reach: tuple[Box, ...] | None = None

    @property
    def reached(self) -> tuple[Box, ...]:
        """Boxes outside of which nothing need be read."""
        return self.boxes if self.reach is None else self.reach


class ReadFigures:
    """The cost of reading rows, counted while it goes on. monotonic: seconds, from any start.

    row_groups_met: those whose first keys do not rule them out. rounds: how often the reader waited
    for the store before it could go on. seconds: by phase. bytes_max: more than that is refused; 0:
    nothing is.
    """

    def __init__(self, monotonic: Callable[[], float] = lambda: 0.0, *, bytes_max: int = 0) -> None:
        self._monotonic = monotonic
        self._bytes_max = bytes_max
        self.tails = self.tails_cached = 0
        self.row_groups = self.row_groups_met = self.row_groups_read = 0
        self.pages = self.pages_read = self.pages_cached = 0
        self.rounds = self.requests = self.bytes = 0
        self.seconds: dict[str, float] = {}

    def counts(self) -> dict[str, int]:
        """Return what was counted, by name."""
        counted = {name: n for name, n in vars(self).items() if not name.startswith("_")}
        return {name: value for name, value in counted.items() if isinstance(value, int)}

    def asked(self, requests: int, size: int) -> None:
        """Count requests that go out at the same time and are waited for. Raises: as `sent`."""
        self.sent(requests, size)
        self.rounds += bool(requests)

    def sent(self, requests: int, size: int) -> None:
        """Count requests before they go out, and the bytes they bring.

        Raises:
            QueryTooLargeError: with them it would be more bytes than allowed; send none of them.
        """
        if self._bytes_max and self.bytes + size > self._bytes_max:
            hint = "ask for fewer keys or columns, or raise scan_bytes_max"
            raise QueryTooLargeError(
                "a query was stopped: it reads more bytes than it may",
                bytes=self.bytes + size,
                scan_bytes_max=self._bytes_max,
                hint=hint,
            )
        self.requests += requests
        self.bytes += size

    @contextmanager
    def timed(self, phase: str) -> Iterator[None]:
        """Count the time inside for a phase."""
        begun = self._monotonic()
        try:
            yield
        finally:
            passed = self._monotonic() - begun
            self.seconds[phase] = self.seconds.get(phase, 0.0) + passed


class RowSorter(Protocol[BatchT]):
    """Sorts any number of rows in bounded memory, spilling to local disk. Closes itself in
    `with`."""

    def add(self, batch: BatchT) -> int:
        """Take rows in any order, already of the table's schema. Returns how many of them
        processing did not leave out.

        Raises:
            InvalidKeyError: a key is null or too long.
            StorageFullError: no room to spill.
        """
        ...

    def rows_in(self, key_ranges: Sequence[KeyRange]) -> list[int]:
        """Return how many rows were added in each key range, without those that processing left
        out. Exact."""
        ...

    def sorted_batches(self, key_range: KeyRange) -> Iterator[BatchT]:
        """Yield what processing makes of the rows of a key range, in key order."""
        ...

    def close(self) -> None:
        """Remove what was spilled."""
        ...


class FilesWithSamples(Protocol):
    """The files from whose samples split points of leaves are chosen."""

    def sample(self, schema: Schema, part: FilePart) -> Sample:
        """Return the sample of a file, inside the part's key range. Reads the tail only.

        Raises:
            ObjectMissingError: the file is not there. CorruptError: its tail is damaged.
        """
        ...


class SortedFiles(Protocol[BatchT]):
    """Writes, reads and merges files of sorted rows."""

    def sorter(self, schema: Schema, processing: ProcessingPass | None = None) -> RowSorter[BatchT]:
        """Return a new, empty sorter. processing: of the rows that it is given."""
        ...

    def write(
        self,
        schema: Schema,
        batches: Iterable[BatchT],
        *,
        name: FileName,
        path: str,
        key_ranges: Sequence[KeyRange],
        job_rows: int = 0,
        value_statistics: bool = False,
    ) -> FileWritten | None:
        """Put one file of sorted rows at `path`; None, and no object, when there are no rows.

        key_ranges: ascending, hold every row.
        job_rows: how many the caller's whole job writes, about: large jobs are done in another way,
            to the same end.
        value_statistics: whether the file tells the bounds of values, to spare queries.

        The file exists when this returns: its PUT was acknowledged, or read back (protocol H25).

        Raises:
            ObjectExistsError: another object has the path.
            UnknownOutcomeError, UnavailableError, StorageFullError: nothing refers to it; leave it.
        """
        ...

    def merge_into_file(
        self,
        schema: Schema,
        parts: Sequence[FilePart],
        *,
        name: FileName,
        path: str,
        key_range: KeyRange,
        processing: ProcessingPass | None = None,
        value_statistics: bool = False,
    ) -> FileWritten | None:
        """Put the rows of all parts, each only inside its key range, into one file; as `merge` and
        `write` would, but what needs no merging may be copied as it is stored.

        key_range: holds every row.

        Raises:
            As `merge` and `write`. MergeMemoryError: the memory allowed does not hold so many
            parts; it tells how much would.
        """
        ...

    def merge(
        self,
        schema: Schema,
        parts: Sequence[FilePart],
        condition: Selection | None = None,
        processing: ProcessingPass | None = None,
    ) -> Iterator[BatchT]:
        """Yield rows of all parts in the order of their keys, each part only inside its key range.

        processing: what is done with them. Rows with equal keys become one only where all parts
        that hold such are given.

        Raises:
            SumTooLargeError: a field cannot hold a sum. IteratorError: a user's code failed.
            ObjectMissingError: a file is not there: read the state again to learn whether it
            should. CorruptError: its bytes contradict its reference, a checksum or the schema.
        """
        ...

    def read(
        self,
        schema: Schema,
        merges: Sequence[Sequence[FilePart]],
        condition: Selection | None = None,
        figures: ReadFigures | None = None,
        processing: ProcessingPass | None = None,
        *,
        job_rows: int = 0,
    ) -> Iterator[BatchT]:
        """Yield what `merge` yields for each of some merges, one after the other, for a query:
        it may read ahead, and stops reading when the iterator is closed.

        merges: the parts of each, in the order of their keys.
        figures: where it counts what it does.
        job_rows: how many the caller's whole job reads, about, where it reads to the end: large
            jobs are done in another way, to the same end. 0: it may stop early.

        Raises:
            As `merge`.
        """
        ...

    def scan(
        self,
        schema: Schema,
        merges: Sequence[Sequence[FilePart]],
        condition: Selection | None = None,
        figures: ReadFigures | None = None,
        processing: ProcessingPass | None = None,
    ) -> Iterator[BatchT]:
        """Yield the rows that `read` yields, in any order. The first batch is small, for a reader
        may stop soon; later ones are larger.

        Raises:
            As `merge`.
        """
        ...

    def iterated(
        self, schema: Schema, batches: Iterable[BatchT], use: IteratorUse
    ) -> Iterator[BatchT]:
        """Yield what a user's iterator makes of sorted rows with all columns.

        Raises:
            InvalidError, IteratorError: there is none of the name, or it failed.
        """
        ...

    def without(
        self,
        schema: Schema,
        batches: Iterable[BatchT],
        selection: Selection,
        processing: ProcessingPass | None = None,
    ) -> Iterator[BatchT]:
        """Yield sorted rows with all columns, but for those of a selection.

        processing: which rows stand for a delete: they stay, for queries show none of them.
        """
        ...

    def left_out(
        self,
        schema: Schema,
        batches: Iterable[BatchT],
        selection: Selection,
        processing: ProcessingPass | None = None,
    ) -> Iterator[BatchT]:
        """Yield just those sorted rows that `without` leaves out, with all columns."""
        ...

    def select(self, schema: Schema, batch: BatchT, columns: Sequence[str]) -> BatchT:
        """Return some columns of a batch that has all."""
        ...

    def sample(self, schema: Schema, part: FilePart) -> Sample:
        """Return the sample of a file, inside the part's key range. Reads the tail only."""
        ...

    def share_read(
        self,
        schema: Schema,
        condition: Selection | None,
        processing: ProcessingPass | None,
        parts: Sequence[FilePart],
        *,
        in_order: bool,
    ) -> float:
        """Return which share of the bytes of files a condition reads that wants every key of them:
        by its columns, about. in_order: by `read`; else by `scan`. Reads one tail at the most.

        Raises:
            ObjectMissingError: a file is not there. CorruptError: its tail is damaged.
        """
        ...

    def measure(
        self, schema: Schema, part: FilePart, key_ranges: Sequence[KeyRange]
    ) -> tuple[RowsWritten | None, ...]:
        """Read every row of a file; return what lies in each key range, as `write` did. For
        inspection: it believes nothing that the file or its reference says.

        key_ranges: ascending, hold every key.

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
