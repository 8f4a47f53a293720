"""Users' jobs that take rows in: each is done once by its id, and the tracker hears of it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

import msgspec

from lakebed.errors import LakebedError, UnknownOutcomeError
from lakebed.model.names import CommitId, JobId, RequestDigest, TransactionNumber, run_name
from lakebed.observe import events
from lakebed.ports.clock import Clock
from lakebed.ports.job_tracker import JobEvent, JobKind, JobTracker
from lakebed.statestore.open_table import OpenTable, Start, start_of
from lakebed.tasks.budgets import Budgets, check_budget
from lakebed.tasks.job_reports import JobReports


class Ingested(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of an ingest job.

    number: of the log entry; 0: the commit was sent, and what becomes of this run is told to the
        job's tracker.
    rows: in its files.
    read: in its source.
    filtered: left out by the table's filter or age-off; what else is missing became part of other
        rows with the same key, or an iterator's.
    repeated: it had been committed before; this call did nothing.
    skipped: files that were left out, and why.
    """

    job: JobId
    number: TransactionNumber
    rows: int = 0
    files: int = 0
    repeated: bool = False
    run: str = ""
    read: int = 0
    filtered: int = 0
    skipped: Mapping[str, str] = {}

    @property
    def all_left_out(self) -> bool:
        """Return whether there were rows, and the table's filter or age-off left out every one."""
        return 0 < self.read == self.filtered


class JobRun(msgspec.Struct, frozen=True):
    """One attempt at a job.

    began: by the machine's monotonic clock.
    """

    job: JobId
    start: Start
    number: int
    began: float

    @property
    def name(self) -> str:
        """Return the run's name, as it stands in reports and in the names of its files."""
        return run_name(self.number)


class UserJobs:
    """Begins and ends runs of users' jobs of one kind."""

    def __init__(self, kind: JobKind, *, tracker: JobTracker, clock: Clock) -> None:
        self._clock = clock
        self._tracker = tracker
        self._reports = JobReports(kind, tracker=tracker, clock=clock)

    def run(
        self,
        table: OpenTable,
        job: JobId | None,
        digest: RequestDigest | None,
        take: Callable[[JobRun], Ingested],
        *,
        budgets: Budgets | None = None,
    ) -> Ingested:
        """Do a job, unless it was done before.

        job: None: a fresh id, never repeated.
        digest: None: not known yet; then `take` finds out when it commits.

        Raises:
            InvalidError: the table's budget of this month is spent.
            JobIdReusedError: the id stands for another request. What `take` raises, with the job in
            the facts of an UnknownOutcomeError.
        """
        begun = self.begin(table, job, digest, budgets=budgets)
        return begun if isinstance(begun, Ingested) else self.end(table, begun, take)

    def begin(
        self,
        table: OpenTable,
        job: JobId | None,
        digest: RequestDigest | None,
        *,
        budgets: Budgets | None = None,
    ) -> JobRun | Ingested:
        """Begin a run, which `end` ends, perhaps in another process of this machine; or return what
        became of the job when it was done before. Raises: JobIdReusedError."""
        id_ = job or JobId(table.fresh_id())
        with table.head.reading() as state:
            start = start_of(state)
            known = (
                None
                if digest is None
                else state.landed((CommitId(id_),)).number_of(CommitId(id_), digest)
            )
            settings = state.settings()
        if known is not None:
            return Ingested(job=id_, number=known, repeated=True)
        run = JobRun(id_, start, table.fresh_run(), self._clock.monotonic())
        try:
            check_budget(budgets, table, settings)
        except LakebedError as error:
            self._report_error(table, run, error)
            raise
        self._reports.report(table.id, id_, "started", run=run.name)
        return run

    def end(self, table: OpenTable, run: JobRun, take: Callable[[JobRun], Ingested]) -> Ingested:
        """Do what a run began for, and report what became of it. Raises: as `take`."""
        try:
            done = take(run)
        except LakebedError as error:
            self._report_error(table, run, error)
            raise
        self._reports.report(
            table.id,
            run.job,
            "committed" if done.number else "finished",
            rows=done.rows,
            filtered=done.filtered,
            seconds=self.seconds(run),
            run=run.name,
            number=done.number,
        )
        if done.all_left_out:
            events.emit(
                events.ROWS_LEFT_OUT,
                level=logging.WARNING,
                table=table.name,
                job=run.job,
                filtered_count=done.filtered,
            )
        return done

    def give_up(self, table: OpenTable, run: JobRun, error: LakebedError) -> None:
        """Report that a run ended by an error, unless another process has reported its end."""
        reports = self._tracker.history(table.id, run.job)
        if reports and (reports[-1].run, reports[-1].event) == (run.name, "started"):
            self._report_error(table, run, error)

    def _report_error(self, table: OpenTable, run: JobRun, error: LakebedError) -> None:
        """Report an error; where the outcome is not known, it is given the job."""
        if isinstance(error, UnknownOutcomeError):
            error.facts["job"] = run.job
            return
        event: JobEvent = "rejected" if error.exit_code == 2 else "failed"
        reason = f"{error.code()}: {error}"
        self._reports.report(table.id, run.job, event, reason=reason, run=run.name)

    def seconds(self, run: JobRun) -> float:
        """Return how long a run has taken so far."""
        return self._clock.monotonic() - run.began
