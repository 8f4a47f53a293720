"""Reports of processes, in memory."""

from __future__ import annotations

from lakebed.model.names import MICROS_PER_SECOND, Micros
from lakebed.ports.processes import SILENT_SECONDS, ProcessReport


class MemoryProcessReports:
    """Remembers the newest report of each process."""

    def __init__(self) -> None:
        self._reports: dict[str, ProcessReport] = {}

    def report(self, report: ProcessReport) -> None:
        """Remember it."""
        known = self._reports.get(report.process)
        if known is None or known.at <= report.at:
            self._reports[report.process] = report

    def living(self, now: Micros) -> list[ProcessReport]:
        """Return the processes that may live."""
        since = now - SILENT_SECONDS * MICROS_PER_SECOND
        found = [one for one in self._reports.values() if not one.ended and one.at >= since]
        return sorted(found, key=lambda one: one.process)
