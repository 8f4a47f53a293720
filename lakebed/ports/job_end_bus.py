"""The door to who wants to hear that jobs have ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from lakebed.model.names import JobId, Micros, TableId, TableName
from lakebed.ports.job_tracker import JobEvent, JobKind


class JobEnd(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a job that a user asked for.

    id: the same each time that this end is published: who hears of it twice knows it by that.
    table: its name now; None: it was dropped, or the message named none.
    rows: written, or of a query's result.
    filtered: rows that the table's filter or age-off left out.
    number: the log entry in which it was committed; 0: it was not.
    reason: an error's code and message; "": it was done.
    at: in microseconds since 1970.
    """

    id: str
    instance: str
    table: TableName | None
    table_id: TableId
    job: JobId
    kind: JobKind
    event: JobEvent
    rows: int
    filtered: int
    number: int
    reason: str
    at: Micros


class JobEndBus(Protocol):
    """Publishes ends of jobs, at least once."""

    def put(self, ends: Sequence[JobEnd]) -> None:
        """Publish them all.

        Raises:
            DeniedError, UnavailableError, UnknownOutcomeError: some may be published; put all of
                them again.
        """
        ...
