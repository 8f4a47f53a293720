"""Ingest: one job is one commit. All of its rows become visible, or none, however often it is
sent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, Protocol, TypeVar

import msgspec

from lakebed.errors import LakebedError, TableBusyError, UnknownOutcomeError
from lakebed.ingest.plan import plan_files
from lakebed.model.files import FileReference
from lakebed.model.names import (
    CommitId,
    JobId,
    PartitionId,
    RequestDigest,
    TransactionNumber,
    file_name,
    run_name,
)
from lakebed.model.paths import file_path
from lakebed.model.ranges import KeyRange
from lakebed.model.schema import Schema
from lakebed.observe import events
from lakebed.ports.clock import Clock
from lakebed.ports.job_tracker import NOT_COMMITTED, JobEvent, JobTracker
from lakebed.ports.sorted_files import RowSorter, SortedFiles
from lakebed.statestore.file_changes import AddFiles
from lakebed.statestore.open_table import OpenTable, Start, start_of
from lakebed.statestore.queued_commits import QueuedCommit, SendCommits, WhomToTell
from lakebed.statestore.state import TableState
from lakebed.tasks.job_reports import JobReports

BatchT = TypeVar("BatchT")
BatchT_co = TypeVar("BatchT_co", covariant=True)


class RowSource(Protocol[BatchT_co]):
    """Rows to ingest."""

    @property
    def schema(self) -> Schema:
        """Of the rows: the table's, or the one it had when the source was made."""
        ...

    @property
    def digest(self) -> RequestDigest | None:
        """Stands for the request: the same request again has the same digest (protocol H1).

        None: not known before all batches were read, as for a stream.
        """
        ...

    def batches(self) -> Iterator[BatchT_co]:
        """Yield the rows in any order. Raises: InvalidError for rows that do not fit."""
        ...


class Ingested(msgspec.Struct, frozen=True, kw_only=True):
    """What became of an ingest job. rows: in its files, which the table's processing may have made
    fewer. repeated: it had been committed before; this call did nothing. number: of the log entry;
    0: the commit was sent, and what becomes of this run is told to the job's tracker."""

    job: JobId
    number: TransactionNumber
    rows: int = 0
    files: int = 0
    repeated: bool = False
    run: str = ""


class _Run(msgspec.Struct, frozen=True):
    """One attempt at a job. began: by the machine's monotonic clock."""

    job: JobId
    start: Start
    number: int
    began: float

    @property
    def name(self) -> str:
        return run_name(self.number)


class _Leaves(msgspec.Struct, frozen=True):
    ids: tuple[PartitionId, ...]
    regions: tuple[KeyRange, ...]


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
        self._clock = clock
        self._reports = JobReports("ingest", tracker=tracker, clock=clock)

    def run(
        self, table: OpenTable, source: RowSource[BatchT], job: JobId | None = None
    ) -> Ingested:
        """Take all rows of `source`, once. job: the user's id; None: a fresh one, never repeated.

        Raises:
            InvalidError: the request can never work; the table is as before.
            TableBusyError: compaction must catch up first; nothing was written.
            FencedError, ConflictError, UnavailableError: nothing became visible; run it again.
            UnknownOutcomeError: send it again with the id in the error's facts.
        """
        id_ = job or JobId(table.fresh_id())
        with table.head.reading() as state:
            start = start_of(state)
            digest = source.digest
            known = (
                None
                if digest is None
                else state.landed((CommitId(id_),)).number_of(CommitId(id_), digest)
            )
        if known is not None:
            return Ingested(job=id_, number=known, repeated=True)
        began = self._clock.monotonic()
        run = _Run(id_, start, table.fresh_run(), began)
        self._reports.tell(table.id, id_, "started", run=run.name)
        try:
            done = self._take(table, source, run)
        except UnknownOutcomeError as error:
            error.facts["job"] = id_
            raise
        except LakebedError as error:
            event: JobEvent = "rejected" if error.exit_code == 2 else "failed"
            reason = f"{error.code()}: {error.message}"
            self._reports.tell(table.id, id_, event, reason=reason, run=run.name)
            raise
        seconds = self._clock.monotonic() - began
        self._reports.tell(
            table.id,
            id_,
            "committed" if done.number else "finished",
            rows=done.rows,
            seconds=seconds,
            run=run.name,
            number=done.number,
        )
        if done.number:
            events.tell(
                events.INGEST_COMMITTED,
                table=table.name,
                job=id_,
                rows_count=done.rows,
                files_count=done.files,
                seconds=round(seconds, 3),
            )
        return done

    def _take(self, table: OpenTable, source: RowSource[BatchT], run: _Run) -> Ingested:
        with table.head.reading() as state:
            processing = table.processing(state, "ingest")
        sorter = self._files.sorter(source.schema, processing)
        taken = 0
        try:
            for batch in source.batches():
                taken += self._files.rows(batch)
                sorter.add(batch)
            references, rows = self._write(table, source.schema, sorter, run)
            assert rows == taken or processing is not None, "no row is lost on the way"
        finally:
            sorter.close()
        digest = source.digest
        assert digest is not None, "known once all batches were read"
        change = AddFiles(tuple(references))
        transaction = table.of_user(run.start, CommitId(run.job), digest, change)
        files = len({r.file.name for r in references})
        done = Ingested(job=run.job, number=NOT_COMMITTED, rows=rows, files=files, run=run.name)
        if self._commits is not None:
            seconds = self._clock.monotonic() - run.began
            whom = WhomToTell("ingest", run.job, run.name, rows, seconds)
            self._commits.run(table.id, [QueuedCommit(transaction, whom)])
            return done
        number = table.head.commit(transaction)
        if number <= run.start.base:  # a stream that had been taken before: these files are swept
            return Ingested(job=run.job, number=number, repeated=True)
        return msgspec.structs.replace(done, number=number)

    def _write(
        self,
        table: OpenTable,
        schema: Schema,
        sorter: RowSorter[BatchT],
        run: _Run,
    ) -> tuple[list[FileReference], int]:
        with table.head.reading() as state:  # leaves as new as can be: a split may have come
            leaves = _leaves(state)
            settings = state.settings()
            counts = sorter.rows_in(leaves.regions)
            _refuse_if_busy(state, leaves, counts, settings.leaf_files_max)
        references: list[FileReference] = []
        groups = plan_files(counts, scrap_rows_max=settings.scrap_rows_max)
        for sequence, group in enumerate(groups):
            name = file_name(base=run.start.base, job=run.job, run=run.number, sequence=sequence)
            regions = [leaves.regions[place] for place in group]
            whole = KeyRange(regions[0].min, regions[-1].max)
            written = self._files.write(
                schema,
                sorter.sorted_batches(whole),
                name=name,
                path=file_path(table.id, name),
                regions=regions,
                job_rows=sum(counts),
                value_statistics=settings.value_statistics,
            )
            if written is None:
                continue  # processing left no row
            for place, part in zip(group, written.regions, strict=True):
                if part is not None:
                    references.append(
                        FileReference(written.file, leaves.ids[place], part.rows, part.bounds)
                    )
        return references, sum(r.rows for r in references)


def _leaves(state: TableState) -> _Leaves:
    tree = state.tree()
    ids = tuple(tree.leaves())
    return _Leaves(ids, tuple(tree.region(leaf) for leaf in ids))


def _refuse_if_busy(state: TableState, leaves: _Leaves, counts: list[int], files_max: int) -> None:
    """Back-pressure: without it lookups and merges have no bound."""
    for leaf, count in zip(leaves.ids, counts, strict=True):
        if count and state.file_count(leaf) >= files_max:
            hint = "let compaction catch up (`lakebed run`), then send the same again"
            raise TableBusyError("a leaf holds too many files", partition=leaf, hint=hint)
