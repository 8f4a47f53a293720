"""Rows become files of a table that a commit may add: sorted, cut at the borders of its leaves.

Nothing is committed here. What is never committed is swept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

import msgspec

from lakebed.model.disk_errors import out_of_memory
from lakebed.model.files import FileReference
from lakebed.model.names import JobId, TransactionNumber, file_name
from lakebed.model.paths import file_path
from lakebed.model.processing import Stage
from lakebed.model.ranges import KeyRange
from lakebed.model.schema import Schema
from lakebed.model.shared_files import plan_files
from lakebed.ports.sorted_files import RowSorter, SortedFiles
from lakebed.statestore.open_table import OpenTable
from lakebed.statestore.table_state.leaves import leaves_of, refuse_if_busy

BatchT = TypeVar("BatchT")

Written = Callable[[int, int], None]
"""Is called with how many rows are written, of how many."""


class Writer(msgspec.Struct, frozen=True):
    """The identity of a writer of files, which makes their names unique (H11, H19).

    base: the log number that was read before the first file.
    run: 32 random bits.
    """

    base: TransactionNumber
    job: JobId
    run: int


class StagedRows(msgspec.Struct, frozen=True):
    """Files that wait for a commit.

    read: rows that were given.
    rows: of the files; fewer than were read where the table leaves rows out or merges them.
    kept_of: of each batch that was given, how many rows were not left out, before any were merged.
    """

    references: tuple[FileReference, ...]
    read: int
    rows: int
    kept_of: tuple[int, ...]

    @property
    def kept(self) -> int:
        """Return how many rows were not left out, before any were merged."""
        return sum(self.kept_of)

    @property
    def files(self) -> int:
        """Return the number of files."""
        return len({reference.file.name for reference in self.references})


class StageRows(Generic[BatchT]):
    """Sorts rows and writes them to files. Safe to kill anywhere.

    stage: of the table's processing: `compaction` for rows that such a table gave, which have been
        through `ingest`.
    before: called with a table before rows are written for it.
    """

    def __init__(
        self,
        *,
        files: SortedFiles[BatchT],
        stage: Stage = "ingest",
        before: Callable[[OpenTable], None] = lambda _: None,
    ) -> None:
        self._files = files
        self._stage: Stage = stage
        self._before = before

    def run(
        self,
        table: OpenTable,
        schema: Schema,
        batches: Iterable[BatchT],
        *,
        writer: Writer,
        on_written: Written = lambda _done, _total: None,
    ) -> StagedRows:
        """Write all rows of some batches to new files. schema: of the rows: the table's, or the one
        it had when they were made.

        Raises:
            InvalidError: rows do not fit.
            TableBusyError: compaction must catch up first; nothing was written.
            UnavailableError: a store is busy, or there is not enough memory.
        """
        self._before(table)
        with table.head.reading() as state:
            processing = table.processing(state, self._stage)
        sorter = self._files.sorter(schema, processing)
        read, kept_of = 0, list[int]()
        try:
            for batch in batches:
                read += self._files.rows(batch)
                kept_of.append(sorter.add(batch))
            references = self._write(table, schema, sorter, writer, on_written)
        except MemoryError as error:  # nothing was committed
            raise out_of_memory(error) from error
        finally:
            sorter.close()
        rows = sum(reference.rows for reference in references)
        if processing is None and not rows == sum(kept_of) == read:
            raise AssertionError("no row is lost on the way")
        return StagedRows(tuple(references), read, rows, tuple(kept_of))

    def _write(
        self,
        table: OpenTable,
        schema: Schema,
        sorter: RowSorter[BatchT],
        writer: Writer,
        on_written: Written,
    ) -> list[FileReference]:
        """Return references to new files."""
        with table.head.reading() as state:  # leaves as new as can be: a split may have come
            leaves = leaves_of(state)
            settings = state.settings()
            counts = sorter.rows_in(leaves.key_ranges)
            refuse_if_busy(state, leaves, counts)
        references: list[FileReference] = []
        done, total = 0, sum(counts)

        def counted(batches: Iterator[BatchT]) -> Iterator[BatchT]:
            nonlocal done
            for batch in batches:
                yield batch
                done += self._files.rows(batch)
                on_written(done, total)

        leaf_groups = plan_files(counts, shared_file_rows_max=settings.shared_file_rows_max)
        for sequence, leaf_group in enumerate(leaf_groups):
            name = file_name(
                base=writer.base,
                job=writer.job,
                run=writer.run,
                sequence=sequence,
                shared=len(leaf_group) > 1,
            )
            key_ranges = [leaves.key_ranges[index] for index in leaf_group]
            whole = KeyRange(key_ranges[0].min, key_ranges[-1].max)
            written = self._files.write(
                schema,
                counted(sorter.sorted_batches(whole)),
                name=name,
                path=file_path(table.id, name),
                key_ranges=key_ranges,
                job_rows=total,
                value_statistics=settings.value_statistics,
            )
            if written is not None:  # processing left rows
                references += leaves.references(written, leaf_group)
        return references
