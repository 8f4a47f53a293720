"""Reports of jobs in memory."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from lakebed.model.names import JobId, Micros, TableId
from lakebed.ports.job_tracker import (
    BEGINNING,
    JOB_EVENTS,
    JobEvent,
    JobReport,
    TaskReport,
    renews,
    replaces,
)


class MemoryJobTracker:
    """Remembers reports in order of time; of one moment, in the order in which they came."""

    def __init__(self) -> None:
        self._jobs: dict[tuple[TableId, JobId], list[JobReport]] = {}
        self._tasks: dict[str, TaskReport] = {}

    def report(self, report: JobReport) -> None:
        """Remember it."""
        reports = self._jobs.setdefault((report.table, report.job), [])
        for at, known in enumerate(reports):
            if renews(report, known):
                reports[at] = report
                return
        reports.append(report)
        reports.sort(key=lambda r: r.at)

    def report_many(self, reports: Sequence[JobReport]) -> None:
        """Remember them all."""
        for report in reports:
            self.report(report)

    def last(self, table: TableId, job: JobId) -> JobReport | None:
        """Return the newest report of a job."""
        reports = self._jobs.get((table, job))
        return _newest(reports) if reports else None

    def history(self, table: TableId, job: JobId) -> list[JobReport]:
        """Return all reports of a job, oldest first."""
        return list(self._jobs.get((table, job), ()))

    def find(
        self,
        table: TableId,
        *,
        events: Collection[JobEvent] = JOB_EVENTS,
        since: Micros = BEGINNING,
        until: Micros | None = None,
        reports_max: int,
    ) -> list[JobReport]:
        """Return the newest report of each job whose event is one of `events`, newest first."""
        newest = (_newest(reports) for (of, _), reports in self._jobs.items() if of == table)
        found = [
            r
            for r in newest
            if r.event in events and since <= r.at and (until is None or r.at < until)
        ]
        return sorted(found, key=lambda r: -r.at)[:reports_max]

    def report_task(self, report: TaskReport) -> None:
        """Remember how far a task has come."""
        before = self._tasks.get(report.task)
        if before is None or before.at <= report.at:
            self._tasks[report.task] = report

    def tasks(self, *, reports_max: int) -> list[TaskReport]:
        """Return the newest report of each task, newest first."""
        return sorted(self._tasks.values(), key=lambda r: -r.at)[:reports_max]

    def forget(self, *, before: Micros) -> None:
        """Drop reports that are older."""
        kept = {
            job: [r for r in reports if r.kept_from >= before]
            for job, reports in self._jobs.items()
        }
        self._jobs = {job: reports for job, reports in kept.items() if reports}
        self._tasks = {task: r for task, r in self._tasks.items() if r.at >= before}


def _newest(reports: Sequence[JobReport]) -> JobReport:
    """Return the report that counts of those of a job, in order of time."""
    newest = reports[0]
    for report in reports[1:]:
        if replaces(report, newest):
            newest = report
    return newest
