"""All jobs of a time, asked of the tracker a page at a time."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from lakebed.model.names import JobId, Micros, TableId
from lakebed.ports.job_tracker import BEGINNING, JOB_EVENTS, JobEvent, JobReport, JobTracker

PAGE = 500
"""Reports that are asked for at once."""


def each_job(
    tracker: JobTracker,
    table: TableId,
    *,
    events: Collection[JobEvent] = JOB_EVENTS,
    since: Micros = BEGINNING,
    until: Micros | None = None,
    page: int = PAGE,
) -> Iterator[JobReport]:
    """Yield the newest report of each job of `[since, until)`, newest first, however many there
    are.

    A page begins with the moment at which the one before it ended: of one moment there may be more
    reports than a page holds. A job that goes on meanwhile may be left out.
    """
    seen: set[JobId] = set()
    moment: Micros | None = None
    while True:
        found = tracker.find(table, events=events, since=since, until=until, reports_max=page)
        yield from (one for one in found if one.at != moment or one.job not in seen)
        if len(found) < page:
            return
        last = found[-1].at
        if last == moment:
            page *= 2
        seen = {one.job for one in found if one.at == last}
        moment, until = last, Micros(last + 1)
