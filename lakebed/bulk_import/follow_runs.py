"""Finds how runs of bulk imports ended, by the log and the platform, never by what a run printed. A
driver reports its end itself; here it is reported for one that could not."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence

import msgspec

from lakebed.bulk_import.launches import next_launch
from lakebed.bulk_import.requests import (
    ImportRequest,
    ImportRequests,
    UnreadableRequest,
    asked_of,
    newest_accepted,
)
from lakebed.errors import (
    InvalidError,
    JobIdReusedError,
    LakebedError,
    NewerFormatError,
    TableMissingError,
)
from lakebed.model.names import (
    MICROS_PER_SECOND,
    JobId,
    Micros,
    RequestDigest,
    TableId,
    TransactionNumber,
)
from lakebed.observe import events, metrics
from lakebed.ports.clock import Clock
from lakebed.ports.job_tracker import NO_TABLE, JobTracker
from lakebed.ports.spark_runs import Platform, RunAsked, RunState, SparkRun, SparkRuns
from lakebed.statestore.open_table import OpenTable
from lakebed.tasks.job_reports import JobReports

CLOCKS_SECONDS = 3_600
"""Most seconds that our clock may be ahead of the platform's."""
START_SECONDS_MAX = 86_400
"""Most seconds until a run is started; then its message is given up."""
UNENDED = ("accepted", "started")


class FollowRuns:
    """Looks up how runs ended. find_table: by id; None: it is gone.

    platforms: those that the instance has. instance_types: of machines that no message names.
    """

    def __init__(
        self,
        *,
        find_table: Callable[[TableId], OpenTable | None],
        requests: ImportRequests,
        platforms: Mapping[Platform, SparkRuns],
        instance_types: Sequence[str],
        tracker: JobTracker,
        clock: Clock,
    ) -> None:
        self._find_table = find_table
        self._requests = requests
        self._platforms = platforms
        self._instance_types = instance_types
        self._tracker = tracker
        self._clock = clock
        self._reports = JobReports("bulk import", tracker=tracker, clock=clock)

    def run(self) -> None:
        """Report ends that are not reported yet. Asks the platform only while runs are open.

        Raises:
            UnavailableError, UnknownOutcomeError: some may not be reported; do it again. Others as
                reading a table's log raises them. All requests were looked at.
        """
        failed: list[LakebedError] = []
        waiting: list[ImportRequest] = []
        for kept in self._requests.open():
            if isinstance(kept, ImportRequest):
                waiting.append(kept)
                continue
            if isinstance(kept.error, NewerFormatError):  # it stays for a newer release to follow
                failed.append(kept.error)
                continue
            try:
                self._end_unreadable(kept)
            except LakebedError as error:
                failed.append(error)
        if waiting:
            failed += self._look_at_all(waiting)
        if failed:
            raise failed[0]

    def _look_at_all(self, waiting: Sequence[ImportRequest]) -> list[LakebedError]:
        """Report the ends of requests. Returns why some could not be reported."""
        asked = [(request, asked_of(request)) for request in waiting]
        runs: dict[str, SparkRun] = {}
        failed: list[LakebedError] = []
        for platform in dict.fromkeys(asked_for.platform for _, asked_for in asked):
            since = min(request.at for request, one in asked if one.platform == platform)
            since = Micros(max(0, since - CLOCKS_SECONDS * MICROS_PER_SECOND))
            if platform in self._platforms:
                runs |= {run.name: run for run in self._platforms[platform].since(since)}
        for request, asked_for in asked:
            run = runs.get(request.name) or self._missing(request)
            try:
                if run.state == "no capacity" and self._asks_again(request, asked_for, run):
                    continue
                if run.state != "open":
                    self._look(request, run)
                    self._requests.forget(request)
            except LakebedError as error:
                failed.append(error)
        return failed

    def _asks_again(self, request: ImportRequest, asked: RunAsked, run: SparkRun) -> bool:
        """Ask for machines again, now or later; False: it was tried often enough, or is refused."""
        kinds = len(asked.instance_types or self._instance_types)
        decided = next_launch(run, kinds=kinds, now=self._clock.now())
        if decided == "launch":
            try:
                self._platforms[asked.platform].start(request.name, asked, launch=run.launches)
            except InvalidError:  # the reason that is told is that of the first refusal
                return False
        return decided != "fail"

    def _end_unreadable(self, request: UnreadableRequest) -> None:
        """Tell that a request ended, once, and put what is left of it aside.

        A run that has read it before goes on, and reports its own end after this one.
        """
        whose = request
        reports = self._tracker.history(request.table, request.job)
        if reports and all(report.run != request.name for report in reports):
            whose = msgspec.structs.replace(request, table=NO_TABLE, job=JobId(request.name))
            reports = self._tracker.history(whose.table, whose.job)
        newest = newest_accepted(reports) in (request.name, None)
        if newest and (not reports or reports[-1].event in UNENDED):
            what = f"{request.error.code()}: its request cannot be read any more"
            reason = f"{what} (run={request.name}; send the message again: it is done once)"
            self._reports.report(
                whose.table, whose.job, "failed", reason=reason, run=request.name, surely=True
            )
        aside = self._requests.put_aside(request)
        events.emit(
            events.WORK_FAILED,
            level=logging.ERROR,
            kind=metrics.WORK_CORRUPT,
            code=request.error.code(),
            table=whose.table,
            job=whose.job,
            reason=request.error,
            kept=aside,
        )

    def _missing(self, request: ImportRequest) -> SparkRun:
        """Return what is reported of a run that the platform does not know: it is being started,
        until its message has surely become a dead letter."""
        age = (self._clock.now() - request.at) / MICROS_PER_SECOND
        state: RunState = "open" if age < START_SECONDS_MAX else "failed"
        reason = "it was never started; its message is a dead letter"
        return SparkRun(name=request.name, id="none", state=state, reason=reason)

    def _look(self, request: ImportRequest, run: SparkRun) -> None:
        table = self._find_table(request.table)
        number = None if table is None else _committed(table, request)
        reports = self._tracker.history(request.table, request.job)
        if reports and reports[-1].event not in UNENDED:
            return  # the driver has reported it, or another run of the same request has
        if number is not None:
            self._reports.report(
                request.table, request.job, "committed", number=number, surely=True
            )
            return
        if newest_accepted(reports) not in (request.name, None):
            return  # the message was sent again: the last report is of a newer run
        what = run.reason or "it ended without a commit"
        reason = f"spark-run-failed: {what} (run={run.id}; send the message again)"
        events.emit(
            events.BULK_IMPORT_FAILED,
            table=request.table,
            job=request.job,
            spark_run=run.id,
            reason=what,
        )
        self._reports.report(
            request.table, request.job, "failed", reason=reason, run=run.id, surely=True
        )


def _committed(table: OpenTable, request: ImportRequest) -> TransactionNumber | None:
    """Return the log entry in which a request was committed; None: it was not."""
    try:
        return table.number_of(request.job, RequestDigest(bytes.fromhex(request.digest)))
    except (JobIdReusedError, TableMissingError):
        return None
