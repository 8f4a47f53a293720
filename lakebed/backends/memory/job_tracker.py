"""Reports of jobs in memory."""

from __future__ import annotations

from lakebed.model.names import JobId, Micros, TableId
from lakebed.ports.job_tracker import JobReport


class MemoryJobTracker:
    """Remembers each job's newest report: later ones, and of one moment the one reported last."""

    def __init__(self) -> None:
        self._reports: dict[tuple[TableId, JobId], JobReport] = {}

    def report(self, report: JobReport) -> None:
        """Remember it."""
        key = report.table, report.job
        before = self._reports.get(key)
        if before is None or before.at <= report.at:
            self._reports.pop(key, None)
            self._reports[key] = report

    def last(self, table: TableId, job: JobId) -> JobReport | None:
        """Return the newest report of a job."""
        return self._reports.get((table, job))

    def recent(self, table: TableId, *, reports_max: int) -> list[JobReport]:
        """Return the newest report of each job, newest first."""
        reports = [r for r in reversed(self._reports.values()) if r.table == table]
        return sorted(reports, key=lambda r: -r.at)[:reports_max]

    def forget(self, *, before: Micros) -> None:
        """Drop reports that are older."""
        self._reports = {key: r for key, r in self._reports.items() if r.at >= before}
