"""Reports of how far a task has come: a task is a worker, from its first job to its last."""

from __future__ import annotations

from lakebed.errors import LakebedError
from lakebed.model.names import MICROS_PER_SECOND, Micros
from lakebed.observe import events
from lakebed.ports.clock import Clock
from lakebed.ports.job_tracker import JobKind, JobTracker, TaskReport

SECONDS_BETWEEN = 10
"""Reports of one task: each costs a write."""


class TaskReports:
    """Sends reports of one task to the tracker. Hints, never truth. task: its id."""

    def __init__(self, kind: JobKind, task: str, *, tracker: JobTracker, clock: Clock) -> None:
        self._kind = kind
        self._task = task
        self._tracker = tracker
        self._clock = clock
        self._started = clock.now()
        self._reported_at = Micros(0)
        self._jobs = 0

    def job_ended(self) -> None:
        """Count a job, and report if there was no report for a while."""
        self._jobs += 1
        if self._clock.now() - self._reported_at >= SECONDS_BETWEEN * MICROS_PER_SECOND:
            self._report(ended=False)

    def end(self) -> None:
        """Report that the task takes no more jobs; one that had none is not worth a report."""
        if self._jobs:
            self._report(ended=True)

    def _report(self, *, ended: bool) -> None:
        self._reported_at = self._clock.now()
        report = TaskReport(
            task=self._task,
            kind=self._kind,
            started=self._started,
            at=self._reported_at,
            jobs=self._jobs,
            ended=ended,
        )
        try:
            self._tracker.report_task(report)
        except LakebedError as error:
            events.emit(events.REPORT_LOST, task=self._task, reason=error)
