"""Takes what was on a day into a table, once: under an id that is the day's.

A day that was missed is made up for within a week.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Protocol

import msgspec
import pyarrow as pa

from lakebed.ingest.ingest_rows import IngestRows
from lakebed.model.names import MICROS_PER_SECOND, JobId, Micros, RequestDigest, digest_of
from lakebed.model.schema import Schema
from lakebed.observe import events
from lakebed.ports.clock import Clock
from lakebed.statestore.open_table import OpenTable
from lakebed.user_files.casting import conformed
from lakebed.user_files.zones import NO_ZONES

DAYS_MAX = 7
"""Most past days that are made up for; well below the time for which a table remembers ids."""
SETTLED_SECONDS = 3_600
"""Seconds after a day's end until its last reports have come."""


class RowsOfDays(Protocol):
    """A kind of rows that are kept day by day.

    subject: its name, in the plural.
    """

    @property
    def subject(self) -> str:
        """Return the name of what is kept."""
        ...

    def of(self, day: date) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a day, in UTC."""
        ...


class KeptDays(msgspec.Struct, frozen=True):
    """The amounts that a run kept: days that were not kept before, and their rows."""

    days: int = 0
    rows: int = 0


class KeepDays:
    """Keeps each day. Safe to kill anywhere, to repeat, and to run twice at once."""

    def __init__(
        self, rows: RowsOfDays, *, ingest: IngestRows[pa.RecordBatch], clock: Clock
    ) -> None:
        self._rows = rows
        self._ingest = ingest
        self._clock = clock

    def run(self, table: OpenTable) -> KeptDays:
        """Keep the days of the last week that have ended and are not kept. Returns what is new.

        Raises:
            What `IngestRows.run` raises: the days before are kept.
        """
        with table.head.reading() as state:
            schema = state.schema()
        kept = KeptDays()
        for day in days_ended(self._clock.now()):
            done = self._ingest.run(table, _Day(schema, day, self._rows), job_of(day))
            if not done.repeated:
                kept = KeptDays(kept.days + 1, kept.rows + done.rows)
                events.emit(events.HISTORY_KEPT, table=table.name, day=day, rows_count=done.rows)
        return kept


class _Day:
    """Rows to ingest. They are asked for when they are read: a day that is kept is not."""

    def __init__(self, schema: Schema, day: date, rows: RowsOfDays) -> None:
        self.schema = schema
        self._day = day
        self._rows = rows

    @property
    def digest(self) -> RequestDigest | None:
        """Stands for the day: what is still known of it may differ when it is asked again."""
        return RequestDigest(digest_of(f"{self._rows.subject} of {self._day}".encode()))

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows."""
        found = self._rows.of(self._day)
        yield from conformed(found, self.schema, extra_columns="refuse", zones=NO_ZONES)


def job_of(day: date) -> JobId:
    """Return the id under which a day is kept."""
    return JobId(f"history-{day}")


def days_ended(now: Micros) -> list[date]:
    """Return the days of the last week, in UTC, that have ended and settled, oldest first."""
    settled = datetime.fromtimestamp(now / MICROS_PER_SECOND - SETTLED_SECONDS, UTC).date()
    return [settled - timedelta(days=ago) for ago in range(DAYS_MAX, 0, -1)]


def beginning_of(day: date) -> Micros:
    """Return when a day begins."""
    begin = datetime(day.year, day.month, day.day, tzinfo=UTC)
    return Micros(int(begin.timestamp()) * MICROS_PER_SECOND)
