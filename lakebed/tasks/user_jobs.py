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
from lakebed.tasks.job_reports import JobReports


class Ingested(msgspec.Struct, frozen=True, kw_only=True):
    """What became of an ingest job.

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
        """Whether there were rows, and the table's filter or age-off left out every one."""
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
        """The run as it stands in reports and in the names of its files."""
        return run_name(self.number)


class UserJobs:
    """Begins and ends runs of users' jobs of one kind."""

    def __init__(self, kind: JobKind, *, tracker: JobTracker, clock: Clock) -> None:
        self._clock = clock
        self._reports = JobReports(kind, tracker=tracker, clock=clock)

    def run(
        self,
        table: OpenTable,
        job: JobId | None,
        digest: RequestDigest | None,
        take: Callable[[JobRun], Ingested],
    ) -> Ingested:
        """Do a job, unless it was done before. job: None: a fresh id, never repeated. digest: None:
        not known yet; then `take` finds out when it commits.

        Raises:
            JobIdReusedError: the id stands for another request. What `take` raises, with the job in
            the facts of an UnknownOutcomeError.
        """
        id_ = job or JobId(table.fresh_id())
        with table.head.reading() as state:
            start = start_of(state)
            known = (
                None
                if digest is None
                else state.landed((CommitId(id_),)).number_of(CommitId(id_), digest)
            )
        if known is not None:
            return Ingested(job=id_, number=known, repeated=True)
        run = JobRun(id_, start, table.fresh_run(), self._clock.monotonic())
        self._reports.report(table.id, id_, "started", run=run.name)
        try:
            done = take(run)
        except UnknownOutcomeError as error:
            error.facts["job"] = id_
            raise
        except LakebedError as error:
            event: JobEvent = "rejected" if error.exit_code == 2 else "failed"
            reason = f"{error.code()}: {error}"
            self._reports.report(table.id, id_, event, reason=reason, run=run.name)
            raise
        self._reports.report(
            table.id,
            id_,
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
                job=id_,
                filtered_count=done.filtered,
            )
        return done

    def seconds(self, run: JobRun) -> float:
        """Return how long a run has taken so far."""
        return self._clock.monotonic() - run.began
