"""The door to what became of jobs: for people and for sending again. Hints, never truth."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Literal, Protocol, get_args

import msgspec

from lakebed.model.names import JobId, Micros, TableId, TransactionNumber

JobKind = Literal["ingest", "bulk import", "compaction", "query"]
JobEvent = Literal[
    "created",
    "accepted",
    "sent",
    "started",
    "finished",
    "committed",
    "rejected",
    "failed",
    "given up",
    "lost",
]


JOB_EVENTS: tuple[JobEvent, ...] = get_args(JobEvent)
BEGINNING, NOT_COMMITTED = Micros(0), TransactionNumber(0)
NO_TABLE = TableId("none")
"""The table id under which messages are reported that name no table of ours."""
KEPT_SECONDS = 30 * 86_400
"""Seconds that reports are kept: as long as the ids of users' jobs are remembered, unless set."""


class JobReport(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that happened to a job.

    event: "finished": its work is done, its commit is on its way; "lost": it ended for nothing: its
        claim had ended before, by a clear, by giving it up or by another run of it.
    reason: an error's code and message.
    rows: written.
    filtered: rows that the table's filter or age-off left out.
    run: which of its runs; "": none, or not told.
    task: the worker that ran it.
    number: the log entry in which it was committed.
    basis: of a rejected merge, a digest of what it rests on; "": not told.
    renewed: when it was reported again because it still holds; 0: never. It takes the place of the
        report that it renews, whose time it keeps.
    """

    table: TableId
    job: JobId
    kind: JobKind
    event: JobEvent
    at: Micros
    reason: str = ""
    rows: int = 0
    seconds: float = 0.0
    run: str = ""
    task: str = ""
    number: TransactionNumber = NOT_COMMITTED
    filtered: int = 0
    basis: str = ""
    renewed: Micros = BEGINNING

    @property
    def kept_from(self) -> Micros:
        """Since when it is kept; see `KEPT_SECONDS`."""
        return max(self.at, self.renewed)

    @property
    def rows_per_second(self) -> float:
        """Return the job's rate in rows per second; 0: its time was not reported."""
        return self.rows / self.seconds if self.seconds else 0.0


def replaces(report: JobReport, newest: JobReport) -> bool:
    """Return whether a report replaces the newest one of its job.

    What is committed is done: no end of another run hides it, whenever it is told. A rejection
    does: the id was used again for another request.
    """
    lasting = ("committed", "rejected")
    if newest.event == "committed" and report.event not in lasting:
        return False
    if report.event == "committed" and newest.event not in lasting:
        return True
    return newest.at <= report.at


def renews(report: JobReport, other: JobReport) -> bool:
    """Return whether a report takes the place of another, which says the same."""
    return msgspec.structs.replace(other, renewed=report.renewed) == report


_decode = msgspec.msgpack.Decoder(JobReport).decode


def report_in(body: bytes) -> JobReport | None:
    """Return the report that a store keeps as msgpack; None: this release does not know of such
    reports, a newer one wrote it."""
    try:
        return _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def reports_in(bodies: Iterable[bytes]) -> list[JobReport]:
    """Return those reports that this release knows of, in order."""
    return [report for body in bodies if (report := report_in(body)) is not None]


class TaskReport(msgspec.Struct, frozen=True, kw_only=True):
    """The progress of a task.

    jobs: ended so far.
    ended: it takes no more.
    """

    task: str
    kind: JobKind
    started: Micros
    at: Micros
    jobs: int = 0
    ended: bool = False


class JobTracker(Protocol):
    """Reports of jobs and tasks. Every implementation passes `tests/contracts/test_job_tracker.py`.

    Reports come in any order, and again. All methods raise UnavailableError when the store is busy;
    what was reported may then be remembered or not.
    """

    def report(self, report: JobReport) -> None:
        """Remember it."""
        ...

    def report_many(self, reports: Sequence[JobReport]) -> None:
        """Remember them all, in fewer requests. Where it raises, some may be remembered."""
        ...

    def last(self, table: TableId, job: JobId) -> JobReport | None:
        """Return the newest report of a job; of one moment, the one reported last. What is
        committed stays the newest, but for `replaces`."""
        ...

    def history(self, table: TableId, job: JobId) -> list[JobReport]:
        """Return all reports of a job, of all its runs, oldest first."""
        ...

    def find(
        self,
        table: TableId,
        *,
        events: Collection[JobEvent] = JOB_EVENTS,
        since: Micros = BEGINNING,
        until: Micros | None = None,
        reports_max: int,
    ) -> list[JobReport]:
        """Return the newest report of each job, newest first: those that tell of one of `events`
        and are of `[since, until)`. It may lag."""
        ...

    def report_task(self, report: TaskReport) -> None:
        """Remember how far a task has come."""
        ...

    def tasks(self, *, reports_max: int) -> list[TaskReport]:
        """Return the newest report of each task, newest first. It may lag."""
        ...

    def forget(self, *, before: Micros) -> None:
        """Drop reports that are older. A store that does so by itself does nothing."""
        ...
