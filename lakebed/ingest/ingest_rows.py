"""Ingest: one job is one commit. All of its rows become visible, or none, however often it is
sent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, Protocol, TypeVar

import msgspec

from lakebed.ingest.stage_rows import StageRows, Writer, Written
from lakebed.model.names import CommitId, JobId, RequestDigest
from lakebed.model.processing import Stage
from lakebed.model.schema import Schema
from lakebed.observe import events, usage
from lakebed.observe.usage import counted_as
from lakebed.ports.clock import Clock
from lakebed.ports.job_tracker import NOT_COMMITTED, JobTracker
from lakebed.ports.sorted_files import SortedFiles
from lakebed.statestore.log_entries.file_changes import AddFiles
from lakebed.statestore.open_table import OpenTable
from lakebed.statestore.queued_commits import CommitRequester, QueuedCommit, SendCommits
from lakebed.tasks.budgets import Budgets
from lakebed.tasks.user_jobs import Ingested, JobRun, UserJobs

BatchT = TypeVar("BatchT")
BatchT_co = TypeVar("BatchT_co", covariant=True)


class RowSource(Protocol[BatchT_co]):
    """Rows to ingest."""

    @property
    def schema(self) -> Schema:
        """Return the schema of the rows: the table's, or the one it had when the source was
        made."""
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


class IngestRows(Generic[BatchT]):
    """Takes rows into a table. Idempotent by job id; safe to kill anywhere.

    commits: sends them to the committer; None: they are committed directly.
    stage: as of `StageRows`.
    budgets: None: none stops a job.
    """

    def __init__(
        self,
        *,
        files: SortedFiles[BatchT],
        clock: Clock,
        tracker: JobTracker,
        commits: SendCommits | None = None,
        stage: Stage = "ingest",
        budgets: Budgets | None = None,
    ) -> None:
        self._budgets = budgets
        self._stage = StageRows(files=files, stage=stage)
        self._commits = commits
        self._jobs = UserJobs("ingest", tracker=tracker, clock=clock)

    @counted_as("ingest")
    def run(
        self,
        table: OpenTable,
        source: RowSource[BatchT],
        job: JobId | None = None,
        *,
        written: Written = lambda _done, _total: None,
    ) -> Ingested:
        """Take all rows of `source`, once.

        job: the user's id; None: a fresh one, never repeated.
        written: called with how many rows are sorted and written, of how many.

        Raises:
            InvalidError: the request can never work, or the table's budget of this month is spent;
                the table is as before.
            TableBusyError: compaction must catch up first; nothing was written.
            FencedError, ConflictError, UnavailableError: nothing became visible; run it again.
            UnknownOutcomeError: send it again with the id in the error's facts.
        """
        return self._jobs.run(
            table,
            job,
            source.digest,
            lambda run: self._take(table, source, run, written),
            budgets=self._budgets,
        )

    def _take(
        self, table: OpenTable, source: RowSource[BatchT], run: JobRun, on_written: Written
    ) -> Ingested:
        staged = self._stage.run(
            table,
            source.schema,
            source.batches(),
            writer=Writer(run.start.base, run.job, run.number),
            on_written=on_written,
        )
        usage.count("rows_in", staged.rows)
        digest = source.digest
        assert digest is not None, "known once all batches were read"
        change = AddFiles(staged.references)
        transaction = table.of_user(run.start, CommitId(run.job), digest, change)
        done = Ingested(
            job=run.job,
            number=NOT_COMMITTED,
            rows=staged.rows,
            files=staged.files,
            run=run.name,
            read=staged.read,
            filtered=staged.read - staged.kept,
        )
        if self._commits is not None:
            seconds = self._jobs.seconds(run)
            requester = CommitRequester(
                "ingest", run.job, run.name, done.rows, seconds, done.filtered
            )
            self._commits.run(table.id, [QueuedCommit(transaction, requester)])
            return done
        number = table.head.commit(transaction)
        if number <= run.start.base:  # a stream that had been taken before: these files are swept
            return Ingested(job=run.job, number=number, repeated=True)
        events.emit(
            events.INGEST_COMMITTED,
            table=table.name,
            job=run.job,
            rows_count=done.rows,
            filtered_count=done.filtered,
            files_count=done.files,
            seconds=round(self._jobs.seconds(run), 3),
        )
        return msgspec.structs.replace(done, number=number)
