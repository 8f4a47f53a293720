"""Publishes the ends of jobs that users asked for, as the tracker hears of them.

At least once: reports come again when a run fails, and a job may be reported by several processes.
An end has the same id each time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from lakebed.model.names import TableId, TableName, digest_of
from lakebed.ports.job_end_bus import JobEnd, JobEndBus
from lakebed.ports.job_tracker import NOT_COMMITTED, JobEvent, JobKind, JobReport

ENDS: Mapping[JobKind, frozenset[JobEvent]] = {
    "ingest": frozenset({"committed", "rejected"}),
    "bulk import": frozenset({"committed", "rejected", "failed"}),
    "query": frozenset({"finished", "rejected"}),
}
"""Events that end a job of each kind that users ask for. Another try follows on one that failed,
but for a bulk import, whose message is gone by then."""

REASON_CHARACTERS_MAX = 2_000
"""Most characters of an end's reason. The tracker has the whole reason."""

NamesOfTables = Callable[[], Mapping[TableId, TableName]]


class PublishJobEnds:
    """instance: whose jobs they are. names: asks for the names that tables have now."""

    def __init__(self, bus: JobEndBus, *, instance: str, names: NamesOfTables) -> None:
        self._bus = bus
        self._instance = instance
        self._names = names

    def run(self, reports: Sequence[JobReport]) -> int:
        """Publish the ends among reports. Returns how many there were.

        Raises: as `JobEndBus.put`: give all reports again.
        """
        ended = [report for report in reports if is_end(report)]
        if ended:
            names = self._names()
            self._bus.put([self._end(report, names) for report in ended])
        return len(ended)

    def _end(self, report: JobReport, names: Mapping[TableId, TableName]) -> JobEnd:
        return JobEnd(
            id=id_of_end(report),
            instance=self._instance,
            table=names.get(report.table),
            table_id=report.table,
            job=report.job,
            kind=report.kind,
            event=report.event,
            rows=report.rows,
            filtered=report.filtered,
            number=report.number,
            reason=report.reason[:REASON_CHARACTERS_MAX],
            at=report.at,
        )


def is_end(report: JobReport) -> bool:
    """Return whether a report says that a job which a user asked for is over."""
    return report.event in ENDS.get(report.kind, ())


def id_of_end(report: JobReport) -> str:
    """Return 32 hex digits that stand for an end. A job is committed once, in one entry, however
    often and late that is reported; other ends are told apart by their time."""
    which = report.number if report.number != NOT_COMMITTED else report.at
    parts = (report.table, report.job, report.event, str(which))
    return digest_of("\0".join(parts).encode()).hex()[:32]
