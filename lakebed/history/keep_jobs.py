"""Takes the jobs that ended on a day into a table, once: under an id that is the day's.

The tracker forgets after a month; a day that was missed is made up for within a week.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, date, datetime, timedelta

import msgspec
import pyarrow as pa

from lakebed.history.job_table import DAY_SECONDS, ENDED, JOBS_TABLE, job_batches
from lakebed.ingest.ingest_rows import IngestRows
from lakebed.model.names import (
    MICROS_PER_SECOND,
    JobId,
    Micros,
    RequestDigest,
    TableId,
    TableName,
    digest_of,
)
from lakebed.model.schema import Schema
from lakebed.observe import events
from lakebed.ports.clock import Clock
from lakebed.ports.job_tracker import NO_TABLE, JobReport, JobTracker
from lakebed.ports.table_registry import TableEntry
from lakebed.statestore.open_table import OpenTable
from lakebed.tasks.job_pages import each_job
from lakebed.user_files.casting import conformed
from lakebed.user_files.zones import NO_ZONES

DAYS_MAX = 7
"""That are made up for; well below the time for which a table remembers ids."""
SETTLED_SECONDS = 3_600
"""After a day's end, until its last reports have come."""
NAMELESS = ""


class Kept(msgspec.Struct, frozen=True):
    """What a run kept: days that were not kept before, and their jobs."""

    days: int = 0
    jobs: int = 0


class KeepJobs:
    """Keeps what ended on each day. Safe to kill anywhere, to repeat, and to run twice at once.

    entries: returns the tables whose jobs are kept: all but the table of jobs itself.
    """

    def __init__(
        self,
        *,
        ingest: IngestRows[pa.RecordBatch],
        entries: Callable[[], Sequence[TableEntry]],
        tracker: JobTracker,
        clock: Clock,
    ) -> None:
        self._ingest = ingest
        self._entries = entries
        self._tracker = tracker
        self._clock = clock

    def run(self, table: OpenTable) -> Kept:
        """Keep the days of the last week that have ended and are not kept. Returns what is new.

        Raises:
            What `IngestRows.run` raises: the days before are kept.
        """
        with table.head.reading() as state:
            schema = state.schema()
        kept = Kept()
        for day in days_ended(self._clock.now()):
            source = _DayOfJobs(schema, day, self._of(day))
            done = self._ingest.run(table, source, job_of(day))
            if not done.repeated:
                kept = Kept(kept.days + 1, kept.jobs + done.rows)
                events.emit(events.HISTORY_KEPT, table=table.name, day=day, jobs_count=done.rows)
        return kept

    def _of(self, day: date) -> Callable[[], Iterator[tuple[str, JobReport]]]:
        """Return what gives the jobs whose last report is of a day."""
        since = _micros(day)
        until = Micros(since + DAY_SECONDS * MICROS_PER_SECOND)

        def found() -> Iterator[tuple[str, JobReport]]:
            named: list[tuple[TableId, TableName | str]] = [
                (entry.id, entry.name) for entry in self._entries() if entry.name != JOBS_TABLE
            ]
            for id_, name in (*named, (NO_TABLE, NAMELESS)):
                reports = each_job(self._tracker, id_, events=ENDED, since=since, until=until)
                yield from ((name, one) for one in reports)

        return found


class _DayOfJobs:
    """Rows to ingest. They are asked for when they are read: a day that is kept is not."""

    def __init__(
        self, schema: Schema, day: date, found: Callable[[], Iterator[tuple[str, JobReport]]]
    ) -> None:
        self.schema = schema
        self._day = day
        self._found = found

    @property
    def digest(self) -> RequestDigest | None:
        """Stands for the day: what the tracker still knows of it may differ when it is asked
        again."""
        return RequestDigest(digest_of(f"jobs of {self._day}".encode()))

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows."""
        yield from conformed(
            job_batches(self._found()), self.schema, extra_columns="refuse", zones=NO_ZONES
        )


def job_of(day: date) -> JobId:
    """Return the id under which a day is kept."""
    return JobId(f"history-{day}")


def days_ended(now: Micros) -> list[date]:
    """Return the days of the last week, in UTC, that have ended and settled, oldest first."""
    settled = datetime.fromtimestamp(now / MICROS_PER_SECOND - SETTLED_SECONDS, UTC).date()
    return [settled - timedelta(days=ago) for ago in range(DAYS_MAX, 0, -1)]


def _micros(day: date) -> Micros:
    begin = datetime(day.year, day.month, day.day, tzinfo=UTC)
    return Micros(int(begin.timestamp()) * MICROS_PER_SECOND)
