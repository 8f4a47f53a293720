"""Reports on jobs, as far as the tracker remembers it."""

from __future__ import annotations

from collections.abc import Sequence

from lakebed.errors import InvalidError, did_you_mean
from lakebed.model.names import MICROS_PER_SECOND, Micros, TableId, job_id
from lakebed.ports.clock import Clock
from lakebed.ports.job_tracker import JOB_EVENTS, JobReport, JobTracker


class JobHistory:
    """Finds reports of jobs. Hints: truth is in the state."""

    def __init__(self, *, tracker: JobTracker, clock: Clock) -> None:
        self._tracker = tracker
        self._clock = clock

    def find(
        self,
        table: TableId,
        *,
        job: str | None,
        events: Sequence[str],
        since_seconds: float | None,
        limit: int,
    ) -> list[JobReport]:
        """Return the newest report of each job, newest first.

        job: all reports of that one instead, oldest first.
        events: only those whose event is one of these; none: of any.
        since_seconds: only reports that are at most this many seconds old; None: of any age.

        Raises:
            InvalidError: there is no such event, or no job can have this id.
        """
        for event in events:
            if event not in JOB_EVENTS:
                hint = did_you_mean(event, JOB_EVENTS, what="event")
                raise InvalidError("no such event of a job", event=event, hint=hint)
        if job is not None:
            return self._tracker.history(table, job_id(job))[-limit:]
        wanted = [event for event in JOB_EVENTS if not events or event in events]
        ago = round((since_seconds or 0) * MICROS_PER_SECOND)
        since = Micros(0) if since_seconds is None else Micros(self._clock.now() - ago)
        return self._tracker.find(table, events=wanted, since=since, reports_max=limit)
