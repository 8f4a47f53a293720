"""Bulk import: a driver that has the whole lake, and tasks that have its objects only."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from lakebed.backends.local.source_files import LocalSourceFiles
from lakebed.bootstrap.app import App
from lakebed.bootstrap.cluster.processes import (
    doing,
    import_rows_into,
    location_for_tasks,
    opened_lake,
)
from lakebed.bulk_import.import_rows import Input
from lakebed.bulk_import.requests import ImportRequest, batch_in
from lakebed.bulk_import.work import Cluster
from lakebed.errors import InvalidError, JobIdReusedError
from lakebed.ingest.allowed_files import AllowedFiles
from lakebed.model.addresses import scheme_of
from lakebed.model.names import RequestDigest, job_id
from lakebed.ports.file_batches import SubmittedFile
from lakebed.ports.source_files import SourceFiles
from lakebed.tasks.job_reports import JobReports
from lakebed.tasks.named_files import named_files
from lakebed.tasks.user_jobs import Ingested
from lakebed.user_files.input_files import (
    ExtraColumns,
    FileFormat,
    InputFile,
    digest_of_files,
    format_of,
    input_files,
)

Task = Callable[[bytes, bytes], bytes]


class Tasks(NamedTuple):
    """The tasks that a cluster runs, in any process on any machine: they may be pickled."""

    sort: Task
    merge: Task


ClusterFor = Callable[[Tasks], Cluster]
"""Returns the cluster that runs these tasks."""


ANYWHERE = ("/",)
"""Folders of files that a command may name: all of this machine."""


class BulkImportApp:
    """The driver of bulk imports into a lake. lake: as `lakebed.connect` takes it, or opened.

    Raises: as `lakebed.connect`; nothing is made.
    """

    def __init__(self, lake: str | os.PathLike[str] | App) -> None:
        self._app = lake if isinstance(lake, App) else opened_lake(lake)
        self._service = import_rows_into(self._app)
        self._reports = JobReports("bulk import", tracker=self._app.tracker, clock=self._app.clock)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._app.close()

    def run(
        self,
        table: str,
        paths: Sequence[str | os.PathLike[str]],
        *,
        cluster_for: ClusterFor,
        job: str | None = None,
        format: FileFormat | None = None,
        extra_columns: ExtraColumns = "refuse",
        on_progress: Callable[[str], None] = lambda _: None,
    ) -> Ingested:
        """Take files into a table by the cluster that runs these tasks. Raises: as `ImportRows`."""
        opened = self._app.catalog.find(table)
        for path in paths:
            if scheme_of(path) is not None:
                hint = "`lakebed ingest` reads it, or send a message to an instance"
                raise InvalidError("not a file of this machine", path=path, hint=hint)
        files = input_files([Path(path).absolute() for path in paths], format)
        return self._service.run(
            opened,
            Input(digest_of_files(files), lambda: files, LocalSourceFiles()),
            cluster=self._cluster(cluster_for, ANYWHERE),
            job=None if job is None else job_id(job),
            extra_columns=extra_columns,
            on_progress=on_progress,
        )

    def run_request(
        self, request: ImportRequest, *, sources: Sequence[str], cluster_for: ClusterFor
    ) -> Ingested:
        """Do what a message asks for. sources: where its files may lie.

        Raises:
            As `ImportRows`, and InvalidError: the table was dropped. The tracker has the reason.
        """
        from lakebed.config.messages import bulk_import_message  # only messages need pydantic

        with self._reported_if_refused(request, InvalidError):
            batch = batch_in(request.body)
            names = None if batch else bulk_import_message(request.body.encode()).files
            table = self._app.catalog.with_id(request.table)
        files = AllowedFiles(sources, objects=self._app.source_files(), local=LocalSourceFiles())
        given = Input(
            RequestDigest(bytes.fromhex(request.digest)),
            lambda: _submitted(batch or ()) if names is None else _found(names, files),
            files,
        )
        cluster = self._cluster(cluster_for, sources)
        with self._reported_if_refused(request, JobIdReusedError):
            return self._service.run(table, given, cluster=cluster, job=request.job)

    @contextmanager
    def _reported_if_refused(
        self, request: ImportRequest, kind: type[InvalidError]
    ) -> Iterator[None]:
        """Report an error of a kind that was not reported yet to the tracker."""
        try:
            yield
        except kind as error:
            reason = f"{error.code()}: {error}"
            self._reports.report(request.table, request.job, "rejected", reason=reason)
            raise

    def _cluster(self, cluster_for: ClusterFor, sources: Sequence[str]) -> Cluster:
        location = location_for_tasks(self._app, sources)
        return cluster_for(Tasks(partial(sort, location), partial(merge, location)))


def sort(location: bytes, job: bytes, work: bytes) -> bytes:
    """Do a task of the first stage, in a process of a cluster."""
    with doing(location) as tasks:
        return tasks.sort(job, work)


def merge(location: bytes, job: bytes, work: bytes) -> bytes:
    """Do a task of the second stage, in a process of a cluster."""
    with doing(location) as tasks:
        return tasks.merge(job, work)


def _found(names: Sequence[str], files: SourceFiles) -> list[InputFile]:
    return [
        InputFile(file.name, format_of(Path(file.name)), file.size, file.version)
        for file in named_files(names, files)
    ]


def _submitted(files: Sequence[SubmittedFile]) -> list[InputFile]:
    """Return the files of a batch: each is read as it was submitted, or the import is refused."""
    return [
        InputFile(file.name, format_of(Path(file.name)), file.size, file.version) for file in files
    ]
