"""Reports of what becomes of jobs of one kind, with this machine's time."""

from __future__ import annotations

from lakebed.errors import LakebedError
from lakebed.model.names import JobId, TableId
from lakebed.observe import events
from lakebed.ports.clock import Clock
from lakebed.ports.job_tracker import JobEvent, JobKind, JobReport, JobTracker


class JobReports:
    """Tells the tracker. Hints, never truth."""

    def __init__(self, kind: JobKind, *, tracker: JobTracker, clock: Clock) -> None:
        self._kind = kind
        self._tracker = tracker
        self._clock = clock

    def tell(
        self,
        table: TableId,
        job: JobId,
        event: JobEvent,
        *,
        reason: str = "",
        rows: int = 0,
        seconds: float = 0.0,
        run: str = "",
    ) -> None:
        """Report that this happened to a job just now. Nothing fails when nobody hears it."""
        report = JobReport(
            table=table,
            job=job,
            kind=self._kind,
            event=event,
            at=self._clock.now(),
            reason=reason,
            rows=rows,
            seconds=seconds,
            run=run,
        )
        try:
            self._tracker.report(report)
        except LakebedError as error:
            events.tell(events.REPORT_LOST, table=table, job=job, reason=error)
