"""Bulk imports that came as messages: what can work is handed to a platform that runs Spark.

Safe to run twice, and to kill anywhere: a run has a name that follows from the message, under which
the platform starts it once; and two runs of one request commit once, by its id.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from lakebed.bulk_import.requests import (
    ImportRequest,
    ImportRequests,
    asked_of,
    body_of_batch,
    name_of,
    newest_accepted,
)
from lakebed.config.messages import bulk_import_message, named_in
from lakebed.errors import InvalidError, JobIdReusedError, TableMissingError
from lakebed.model.jobs import BatchMessage, batch_job, batch_message_in
from lakebed.model.names import JobId, Micros, TableId, TransactionNumber
from lakebed.observe import events
from lakebed.ports.clock import Clock
from lakebed.ports.file_batches import FileBatches, digest_of_batch
from lakebed.ports.job_queue import message_job
from lakebed.ports.job_tracker import JobTracker
from lakebed.ports.spark_runs import Platform, RunAsked, SparkRuns
from lakebed.statestore.open_table import OpenTable
from lakebed.tasks.job_reports import JobReports
from lakebed.tasks.named_files import digest_of_names
from lakebed.tasks.refused_messages import FindTable, report_refused


class StartRuns:
    """Starts runs. check_file: raises InvalidError for files outside the allowed sources.

    batches: those of submitted files. platforms: those that the instance has.
    """

    def __init__(
        self,
        *,
        find_table: FindTable,
        find_id: Callable[[TableId], OpenTable | None],
        batches: FileBatches,
        check_file: Callable[[str], None],
        requests: ImportRequests,
        platforms: Mapping[Platform, SparkRuns],
        tracker: JobTracker,
        clock: Clock,
    ) -> None:
        self._find_table = find_table
        self._find_id = find_id
        self._batches = batches
        self._check_file = check_file
        self._requests = requests
        self._platforms = platforms
        self._tracker = tracker
        self._clock = clock
        self._reports = JobReports("bulk import", tracker=tracker, clock=clock)

    def start(self, body: bytes, *, sent_at: Micros) -> None:
        """Start the run of a message, unless what it asks for was committed before.

        Raises:
            InvalidError: it can never work; the tracker has the reason. UnavailableError,
                UnknownOutcomeError: it is not known to be started; try it again.
        """
        batch = batch_message_in(body)
        if batch is not None:
            self._start_batch(batch, body, sent_at)
            return
        job = named_in(body).job or message_job(body, sent_at)
        try:
            asked = bulk_import_message(body)
            table = self._find_table(asked.table)
            for name in asked.files:
                self._check_file(name)
            runs = self._platform(asked.platform)
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
            self._started(runs, table, request)
        except InvalidError as error:
            report_refused(self._reports, self._find_table, body, job, error)
            raise

    def _start_batch(self, message: BatchMessage, body: bytes, sent_at: Micros) -> None:
        """Start the job of a batch, unless it is committed or forgotten, or its table was dropped.
        Files that cannot be taken in make the import fail; then an ingest leaves them out."""
        table = self._find_id(message.table_id)
        batch = None if table is None else self._batches.batch(table.id, message.batch)
        if table is None or batch is None:
            return
        job = batch_job(table.id, batch.number)
        digest = digest_of_batch(job, batch.left())
        try:
            if table.number_of(job, digest) is not None:
                return
        except (JobIdReusedError, TableMissingError):
            return
        request = ImportRequest(
            name=name_of(job, body, sent_at),
            table=table.id,
            job=job,
            body=body_of_batch(batch.left()),
            digest=digest.hex(),
            at=self._clock.now(),
        )
        try:
            self._started(self._platform(RunAsked().platform), table, request)
        except InvalidError as error:
            reason = f"{error.code()}: {error}"
            self._reports.report(table.id, job, "rejected", reason=reason)
            raise

    def _started(self, runs: SparkRuns, table: OpenTable, request: ImportRequest) -> None:
        self._requests.put(request)
        self._report_accepted(request)
        run = self._run(runs, request)
        events.emit(events.BULK_IMPORT_SENT, table=table.name, job=request.job, spark_run=run)

    def _platform(self, name: Platform) -> SparkRuns:
        if name not in self._platforms:
            hint = "leave `platform` out, or deploy with `spark_clusters` or `shared_cluster`"
            there = ", ".join(self._platforms)
            raise InvalidError(
                "the instance has no such platform", platform=name, has=there, hint=hint
            )
        return self._platforms[name]

    def _run(self, runs: SparkRuns, request: ImportRequest) -> str:
        try:
            return runs.start(request.name, asked_of(request))
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
