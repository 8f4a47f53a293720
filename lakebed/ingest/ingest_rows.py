"""Ingest: one job is one commit. All of its rows become visible, or none, however often it is
sent."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, Protocol, TypeVar

import msgspec

from lakebed.errors import out_of_memory
from lakebed.model.files import FileReference
from lakebed.model.names import CommitId, JobId, RequestDigest, file_name
from lakebed.model.paths import file_path
from lakebed.model.ranges import KeyRange
from lakebed.model.schema import Schema
from lakebed.model.shared_files import plan_files
from lakebed.observe import events
from lakebed.ports.clock import Clock
from lakebed.ports.job_tracker import NOT_COMMITTED, JobTracker
from lakebed.ports.sorted_files import RowSorter, SortedFiles
from lakebed.statestore.log_entries.file_changes import AddFiles
from lakebed.statestore.open_table import OpenTable
from lakebed.statestore.queued_commits import CommitRequester, QueuedCommit, SendCommits
from lakebed.statestore.table_state.leaves import leaves_of, refuse_if_busy
from lakebed.tasks.user_jobs import Ingested, JobRun, UserJobs

BatchT = TypeVar("BatchT")
BatchT_co = TypeVar("BatchT_co", covariant=True)


class RowSource(Protocol[BatchT_co]):
    """Rows to ingest."""

    @property
    def schema(self) -> Schema:
        """The schema of the rows: the table's, or the one it had when the source was made."""
        ...

    @property
    def digest(self) -> RequestDigest | None:
        """Stands for the request: the same request again has the same digest (protocol H5).

        None: not known before all batches were read, as for a stream.
        """
        ...

    def batches(self) -> Iterator[BatchT_co]:
        """Yield the rows in any order. Raises: InvalidError for rows that do not fit."""
        ...


Written = Callable[[int, int], None]
"""Is called with how many rows are written, of how many."""


class IngestRows(Generic[BatchT]):
    """Takes rows into a table. Idempotent by job id; safe to kill anywhere.

    commits: sends them to the committer; None: they are committed directly.
    """

    def __init__(
        self,
        *,
        files: SortedFiles[BatchT],
        clock: Clock,
        tracker: JobTracker,
        commits: SendCommits | None = None,
    ) -> None:
        self._files = files
        self._commits = commits
        self._jobs = UserJobs("ingest", tracker=tracker, clock=clock)

    def run(
        self,
        table: OpenTable,
        source: RowSource[BatchT],
        job: JobId | None = None,
        *,
        written: Written = lambda _done, _total: None,
    ) -> Ingested:
        """Take all rows of `source`, once. job: the user's id; None: a fresh one, never repeated.
        written: called with how many rows are sorted and written, of how many.

        Raises:
            InvalidError: the request can never work; the table is as before.
            TableBusyError: compaction must catch up first; nothing was written.
            FencedError, ConflictError, UnavailableError: nothing became visible; run it again.
            UnknownOutcomeError: send it again with the id in the error's facts.
        """
        return self._jobs.run(
            table, job, source.digest, lambda run: self._take(table, source, run, written)
        )

    def _take(
        self, table: OpenTable, source: RowSource[BatchT], run: JobRun, on_written: Written
    ) -> Ingested:
        with table.head.reading() as state:
            processing = table.processing(state, "ingest")
        sorter = self._files.sorter(source.schema, processing)
        taken = 0
        try:
            for batch in source.batches():
                taken += self._files.rows(batch)
                sorter.add(batch)
            references, kept = self._write(table, source.schema, sorter, run, on_written)
            rows = sum(reference.rows for reference in references)
            if processing is None and not rows == kept == taken:
                raise AssertionError("no row is lost on the way")
        except MemoryError as error:  # nothing was committed
            raise out_of_memory(error) from error
        finally:
            sorter.close()
        digest = source.digest
        assert digest is not None, "known once all batches were read"
        change = AddFiles(tuple(references))
        transaction = table.of_user(run.start, CommitId(run.job), digest, change)
        files = len({r.file.name for r in references})
        done = Ingested(
            job=run.job,
            number=NOT_COMMITTED,
            rows=rows,
            files=files,
            run=run.name,
            read=taken,
            filtered=taken - kept,
        )
        if self._commits is not None:
            seconds = self._jobs.seconds(run)
            requester = CommitRequester("ingest", run.job, run.name, rows, seconds, done.filtered)
            self._commits.run(table.id, [QueuedCommit(transaction, requester)])
            return done
        number = table.head.commit(transaction)
        if number <= run.start.base:  # a stream that had been taken before: these files are swept
            return Ingested(job=run.job, number=number, repeated=True)
        events.emit(
            events.INGEST_COMMITTED,
            table=table.name,
            job=run.job,
            rows_count=rows,
            filtered_count=done.filtered,
            files_count=files,
            seconds=round(self._jobs.seconds(run), 3),
        )
        return msgspec.structs.replace(done, number=number)

    def _write(
        self,
        table: OpenTable,
        schema: Schema,
        sorter: RowSorter[BatchT],
        run: JobRun,
        on_written: Written,
    ) -> tuple[list[FileReference], int]:
        """Return references to new files, and how many rows were not left out."""
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
                base=run.start.base,
                job=run.job,
                run=run.number,
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
        return references, total
