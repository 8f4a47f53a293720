"""Messages of users that can never work: their senders find the reason under the job's id."""

from __future__ import annotations

from collections.abc import Callable

from lakebed.config.messages import named_in
from lakebed.errors import InvalidError, LakebedError
from lakebed.model.names import JobId
from lakebed.ports.job_tracker import NO_TABLE
from lakebed.statestore.open_table import OpenTable
from lakebed.tasks.job_reports import JobReports

FindTable = Callable[[str], OpenTable]
"""A function that finds a table by name. Raises: InvalidError."""


def report_refused(
    reports: JobReports, find_table: FindTable, body: bytes, job: JobId, error: LakebedError
) -> None:
    """Report to the tracker, under the table that a message names, or under none."""
    name = named_in(body).table
    try:
        table = NO_TABLE if name is None else find_table(name).id
    except InvalidError:
        table = NO_TABLE
    reports.report(table, job, "rejected", reason=f"{error.code()}: {error}")
