"""Submits files to a lake, makes batches of them, and takes them in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import pyarrow as pa

from lakebed.backends.local.source_files import LocalSourceFiles
from lakebed.bootstrap.app import App
from lakebed.errors import InvalidError
from lakebed.ingest.batch_files import BatchFiles
from lakebed.ingest.batch_listing import BatchListing
from lakebed.ingest.dropped_tables import DropBatches
from lakebed.ingest.run_batches import RunBatches
from lakebed.ingest.send_jobs import SendJobs, not_in_s3
from lakebed.ingest.submit_files import SubmitFiles
from lakebed.ingest.submitted_rows import RowsOfFiles
from lakebed.model.addresses import scheme_of
from lakebed.model.jobs import BATCHES_QUEUE
from lakebed.ports.file_batches import BatchTarget, FileBatches
from lakebed.ports.job_queue import JobQueue
from lakebed.ports.source_files import SourceFile, SourceFiles


class NamedFiles:
    """Files of this machine, and by URL. local: None: the lake is an instance, whose tasks have
    other machines."""

    def __init__(self, *, local: SourceFiles | None, urls: SourceFiles) -> None:
        self._local = local
        self._urls = urls

    def find(self, name: str) -> list[SourceFile]:
        """Return the files of a name. Raises: InvalidError."""
        return self._owner(name).find(name)

    def on_disk(
        self, file: SourceFile, spans: Sequence[tuple[int, int]] | None = None
    ) -> AbstractContextManager[Path]:
        """Have a file at a path of this machine."""
        return self._owner(file.name).on_disk(file, spans)

    def _owner(self, name: str) -> SourceFiles:
        if scheme_of(name) is not None:
            return self._urls
        if self._local is None:
            raise not_in_s3(name)
        return self._local


def batches_of(app: App) -> FileBatches:
    """Return the batches of a lake. Raises: InvalidError: it has none."""
    if app.batches is None:
        hint = "deploy it again with this release, and with its stack `batching`"
        raise InvalidError("this instance was deployed without batching", hint=hint)
    return app.batches


def submit_files(app: App) -> SubmitFiles:
    """Return what submits files. Raises: InvalidError: the lake has no batches."""
    return SubmitFiles(batches=batches_of(app), files=_files(app), clock=app.clock)


def send_jobs(app: App) -> SendJobs:
    """Return what sends jobs to tasks, and to Spark. Raises: InvalidError: the lake has none."""
    if app.local is not None:
        hint = "`Table.ingest` takes files in at once, `Table.submit` lets them wait for `lake.run`"
        raise InvalidError("a lake in a directory has no tasks that jobs are sent to", hint=hint)
    return SendJobs(app.queues, rng=app.rng)


def batch_listing(app: App) -> BatchListing:
    """Return what looks at batches. Raises: InvalidError: the lake has none."""
    return BatchListing(batches=batches_of(app), tracker=app.tracker, clock=app.clock)


def batch_files(app: App) -> BatchFiles:
    """Return what makes batches in a directory, where all are ingested."""
    queues: Mapping[BatchTarget, JobQueue] = {"ingest": app.queues.open(BATCHES_QUEUE)}
    return BatchFiles(batches=batches_of(app), queues=queues, tracker=app.tracker, clock=app.clock)


def drop_batches(app: App) -> DropBatches:
    """Return what forgets batches of tables that are gone."""
    return DropBatches(
        batches=batches_of(app), heads=app.heads, tracker=app.tracker, clock=app.clock
    )


def run_batches(app: App, files: SourceFiles | None = None) -> RunBatches[pa.RecordBatch]:
    """Return what runs jobs of batches. files: those that may be read; None: those that may be
    submitted."""
    return RunBatches[pa.RecordBatch](
        ingest=app.ingest,
        batches=batches_of(app),
        find_table=app.catalog.find_id,
        rows=RowsOfFiles(files or _files(app)),
    )


def _files(app: App) -> SourceFiles:
    local = None if app.local is None else LocalSourceFiles()
    return NamedFiles(local=local, urls=app.url_files())
