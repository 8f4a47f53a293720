"""Ingest jobs that came as messages: files that may be read become rows of a table, once.

What can never work is refused where its sender looks: under the job's id, with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from lakebed.config.messages import IngestMessage, ingest_message, named_in
from lakebed.errors import InvalidError, JobIdReusedError, LakebedError
from lakebed.model.jobs import batch_message_in
from lakebed.model.names import RequestDigest
from lakebed.model.schema import Schema
from lakebed.ports.clock import Clock
from lakebed.ports.job_queue import Received, message_job
from lakebed.ports.job_tracker import NO_TABLE, JobTracker
from lakebed.ports.source_files import SourceFiles
from lakebed.tasks.job_reports import JobReports
from lakebed.tasks.named_files import digest_of_names, named_files
from lakebed.tasks.refused_messages import report_refused
from lakebed.tasks.user_jobs import Ingested
from lakebed.user_files.input_files import InputFile, format_of, rows_of

if TYPE_CHECKING:
    import pyarrow as pa

    from lakebed.ingest.ingest_rows import IngestRows
    from lakebed.ingest.run_batches import RunBatches
    from lakebed.statestore.open_table import OpenTable


class IngestFromMessages:
    """Runs ingest jobs of messages. find_table: by name. batches: runs those of batches; None:
    there are none. Safe to run twice, to kill anywhere."""

    def __init__(
        self,
        *,
        ingest: IngestRows[pa.RecordBatch],
        find_table: Callable[[str], OpenTable],
        files: SourceFiles,
        tracker: JobTracker,
        clock: Clock,
        batches: RunBatches[pa.RecordBatch] | None = None,
    ) -> None:
        self._ingest = ingest
        self._find_table = find_table
        self._files = files
        self._batches = batches
        self._reports = JobReports("ingest", tracker=tracker, clock=clock)

    def run(self, message: Received) -> Ingested:
        """Do the job of a message.

        Raises:
            InvalidError: it can never work; nothing was taken, and the tracker has the reason.
            Errors of `IngestRows.run`: run it again.
        """
        batch = None if self._batches is None else batch_message_in(message.body)
        if self._batches is not None and batch is not None:
            return self._batches.run(batch)
        job = named_in(message.body).job or message_job(message.body, message.sent_at)
        try:
            asked = ingest_message(message.body)
            table = self._find_table(asked.table)
            source = MessageSource(asked, self._files, table.schema)
        except InvalidError as error:
            report_refused(self._reports, self._find_table, message.body, job, error)
            raise
        except LakebedError as error:  # before there is a run that reports it
            reason = f"{error.code()}: {error}"
            self._reports.report(NO_TABLE, job, "failed", reason=reason)
            raise
        try:
            return self._ingest.run(table, source, job)
        except JobIdReusedError as error:  # it is not reported yet
            report_refused(self._reports, self._find_table, message.body, job, error)
            raise


class MessageSource:
    """Rows of the files that a message names, each on this machine while it is read.

    The digest stands for the message, not for the files: it is the same request when they were
    changed since, or are gone.
    """

    def __init__(self, asked: IngestMessage, files: SourceFiles, schema: Schema) -> None:
        self._asked = asked
        self._files = files
        self.schema = schema

    @property
    def digest(self) -> RequestDigest:
        """Stands for the request."""
        return digest_of_names(self._asked.files)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows, file after file. An error names the file."""
        for file in named_files(self._asked.files, self._files):
            try:
                with self._files.on_disk(file) as path:
                    local = InputFile(str(path), format_of(path), file.size, file.version)
                    yield from rows_of(local, self.schema)
            except LakebedError as error:
                error.facts["path"] = file.name
                raise
