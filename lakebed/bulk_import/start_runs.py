"""Bulk imports that came as messages: what can work is handed to a platform that runs Spark.

Safe to run twice, and to kill anywhere: a run has a name that follows from the message, under which
the platform starts it once; and two runs of one request commit once, by its id.
"""

from __future__ import annotations

from collections.abc import Callable

from lakebed.bulk_import.requests import (
    ImportRequest,
    ImportRequests,
    name_of,
    newest_accepted,
)
from lakebed.config.messages import BulkImportMessage, bulk_import_message, named_in
from lakebed.errors import InvalidError
from lakebed.model.names import JobId, Micros, TableId, TransactionNumber
from lakebed.observe import events
from lakebed.ports.clock import Clock
from lakebed.ports.job_queue import message_job
from lakebed.ports.job_tracker import JobTracker
from lakebed.ports.spark_runs import SparkRuns
from lakebed.tasks.job_reports import JobReports
from lakebed.tasks.named_files import digest_of_names
from lakebed.tasks.refused_messages import FindTable, report_refused


class StartRuns:
    """Starts runs. check_file: raises InvalidError for files outside the allowed sources."""

    def __init__(
        self,
        *,
        find_table: FindTable,
        check_file: Callable[[str], None],
        requests: ImportRequests,
        runs: SparkRuns,
        tracker: JobTracker,
        clock: Clock,
    ) -> None:
        self._find_table = find_table
        self._check_file = check_file
        self._requests = requests
        self._runs = runs
        self._tracker = tracker
        self._clock = clock
        self._reports = JobReports("bulk import", tracker=tracker, clock=clock)

    def start(self, body: bytes, *, sent_at: Micros) -> None:
        """Start the run of a message, unless what it asks for was committed before.

        Raises:
            InvalidError: it can never work; the tracker has the reason. UnavailableError,
                UnknownOutcomeError: it is not known to be started; try it again.
        """
        job = named_in(body).job or message_job(body, sent_at)
        try:
            asked = bulk_import_message(body)
            table = self._find_table(asked.table)
            for name in asked.files:
                self._check_file(name)
            digest = digest_of_names(asked.files)
            number = table.number_of(job, digest)
            if number is not None:
                self._report_committed(table.id, job, number)
                return
            request = ImportRequest(
                name=name_of(job, body, sent_at),
                table=table.id,
                job=job,
                body=body.decode(),
                digest=digest.hex(),
                at=self._clock.now(),
            )
            self._requests.put(request)
            self._report_accepted(request)
            run = self._run(asked, request)
        except InvalidError as error:
            report_refused(self._reports, self._find_table, body, job, error)
            raise
        events.emit(events.BULK_IMPORT_SENT, table=asked.table, job=job, spark_run=run)

    def _run(self, asked: BulkImportMessage, request: ImportRequest) -> str:
        try:
            return self._runs.start(request.name, asked.spark_conf)
        except InvalidError:  # there is no run whose end could be looked up
            self._requests.forget(request)
            raise

    def _report_accepted(self, request: ImportRequest) -> None:
        """Report it before the driver reports more, and not again when a message comes again."""
        reports = self._tracker.history(request.table, request.job)
        if newest_accepted(reports) != request.name:
            self._reports.report(request.table, request.job, "accepted", run=request.name)

    def _report_committed(self, table: TableId, job: JobId, number: TransactionNumber) -> None:
        """Report to who sent a request again that it was done, unless that is the last they
        heard."""
        reports = self._tracker.history(table, job)
        if not reports or reports[-1].event != "committed":
            self._reports.report(table, job, "committed", number=number, surely=True)
