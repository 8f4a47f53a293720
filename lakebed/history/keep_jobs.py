"""The jobs that ended on a day, as the tracker knows them: it forgets after a month."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import date

import pyarrow as pa

from lakebed.history.job_table import DAY_SECONDS, ENDED, JOBS_TABLE, job_batches
from lakebed.history.keep_days import beginning_of
from lakebed.history.usage_table import USAGE_TABLE
from lakebed.model.names import MICROS_PER_SECOND, Micros, TableId, TableName
from lakebed.ports.job_tracker import NO_TABLE, JobReport, JobTracker
from lakebed.ports.table_registry import TableEntry
from lakebed.tasks.job_pages import each_job

NAMELESS = ""
OF_HISTORY = frozenset({JOBS_TABLE, USAGE_TABLE})


class EndedJobs:
    """The jobs that ended on each day.

    entries: returns the tables whose jobs are kept: all but those that hold history themselves.
    """

    subject = "jobs"

    def __init__(self, *, entries: Callable[[], Sequence[TableEntry]], tracker: JobTracker) -> None:
        self._entries = entries
        self._tracker = tracker

    def of(self, day: date) -> Iterator[pa.RecordBatch]:
        """Yield the jobs whose last report is of a day."""
        yield from job_batches(self._found(day))

    def _found(self, day: date) -> Iterator[tuple[TableName | str, JobReport]]:
        since = beginning_of(day)
        until = Micros(since + DAY_SECONDS * MICROS_PER_SECOND)
        named: list[tuple[TableId, TableName | str]] = [
            (entry.id, entry.name) for entry in self._entries() if entry.name not in OF_HISTORY
        ]
        for id_, name in (*named, (NO_TABLE, NAMELESS)):
            reports = each_job(self._tracker, id_, events=ENDED, since=since, until=until)
            yield from ((name, one) for one in reports)
