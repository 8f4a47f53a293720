"""Reports of what becomes of jobs of one kind, with this machine's time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict, Unpack

import msgspec

from lakebed.errors import LakebedError
from lakebed.model.names import MICROS_PER_SECOND, JobId, Micros, TableId, TransactionNumber
from lakebed.observe import events
from lakebed.ports.clock import Clock
from lakebed.ports.job_tracker import KEPT_SECONDS, JobEvent, JobKind, JobReport, JobTracker


class JobFacts(TypedDict, total=False):
    """The facts that a report may hold besides the event: fields of `JobReport`."""

    reason: str
    rows: int
    filtered: int
    seconds: float
    run: str
    number: TransactionNumber
    basis: str


class JobReports:
    """Sends reports to the tracker. Hints, never truth."""

    def __init__(self, kind: JobKind, *, tracker: JobTracker, clock: Clock) -> None:
        self._kind = kind
        self._tracker = tracker
        self._clock = clock

    def report(
        self,
        table: TableId,
        job: JobId,
        event: JobEvent,
        *,
        surely: bool = False,
        **facts: Unpack[JobFacts],
    ) -> None:
        """Report that this happened to a job just now. A report may be lost without an error,
        unless `surely` is given.

        Raises:
            UnavailableError: the report may be lost; send it again. Only with `surely`.
        """
        reports = [msgspec.structs.replace(self._new_report(table, job, event), **facts)]
        if surely:
            self._tracker.report_many(reports)
        else:
            self._send(reports)

    def report_lost(self, table: TableId, job: JobId, *, reason: str, run: str = "") -> None:
        """Report that a job ended for nothing, unless an end of it was reported."""
        try:
            last = self._tracker.last(table, job)
        except LakebedError as error:
            events.emit(events.REPORT_LOST, table=table, job=job, reason=error)
            return
        if last is None or last.event not in ("committed", "given up", "lost"):
            self.report(table, job, "lost", reason=reason, run=run)

    def report_all(self, table: TableId, jobs: Sequence[JobId], event: JobEvent) -> None:
        """Report that this happened to jobs just now, in as few requests as can be."""
        self._send([self._new_report(table, job, event) for job in jobs])

    def renew(self, reports: Sequence[JobReport]) -> None:
        """Keep those for as long again as new ones of which half the time is over. They stay of
        their time, so that a later report of the job, also one that comes meanwhile, counts."""
        now = self._clock.now()
        old = Micros(now - KEPT_SECONDS // 2 * MICROS_PER_SECOND)
        due = [msgspec.structs.replace(r, renewed=now) for r in reports if r.kept_from <= old]
        if due:
            self._send(due)

    def _new_report(self, table: TableId, job: JobId, event: JobEvent) -> JobReport:
        at = self._clock.now()
        return JobReport(table=table, job=job, kind=self._kind, event=event, at=at)

    def _send(self, reports: Sequence[JobReport]) -> None:
        try:
            self._tracker.report_many(reports)
        except LakebedError as error:
            for report in reports:
                events.emit(events.REPORT_LOST, table=report.table, job=report.job, reason=error)
