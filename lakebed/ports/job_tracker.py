"""The door to what became of jobs: for people and for sending again. Hints, never truth."""

from __future__ import annotations

from typing import Literal, Protocol

import msgspec

from lakebed.model.names import JobId, Micros, TableId, TransactionNumber

JobKind = Literal["ingest", "compaction"]
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
]


class JobReport(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that happened to a job. reason: an error's code and message. rows: written.

    run: which of its runs; "": none, or not told. task: the worker that ran it. number: the log
    entry in which it was committed. finished: its work is done, its commit is on its way.
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
    number: TransactionNumber = TransactionNumber(0)

    @property
    def rows_per_second(self) -> float:
        """How fast the job was; 0: not told."""
        return self.rows / self.seconds if self.seconds else 0.0


class JobTracker(Protocol):
    """Reports of jobs. Every implementation passes `tests/contracts/test_job_tracker.py`."""

    def report(self, report: JobReport) -> None:
        """Remember it."""
        ...

    def last(self, table: TableId, job: JobId) -> JobReport | None:
        """Return the newest report of a job."""
        ...

    def recent(self, table: TableId, *, reports_max: int) -> list[JobReport]:
        """Return the newest report of each job, newest first."""
        ...

    def forget(self, *, before: Micros) -> None:
        """Drop reports that are older."""
        ...
