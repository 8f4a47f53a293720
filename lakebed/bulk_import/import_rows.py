"""Bulk import: one job is one commit, like ingest, but a cluster sorts and merges."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import NamedTuple, Protocol

from lakebed.bulk_import.plan import (
    file_rows,
    plan_merges,
    plan_sorts,
    rows_by_key_range,
    sort_bytes,
)
from lakebed.bulk_import.work import (
    FileMerged,
    ImportJob,
    RunSorted,
    SortWork,
    answers_in,
    encode,
)
from lakebed.errors import LakebedError
from lakebed.model.files import FileReference
from lakebed.model.names import CommitId, JobId, Micros, RequestDigest
from lakebed.model.table_text import table_text
from lakebed.observe import events
from lakebed.ports.clock import Clock
from lakebed.ports.job_tracker import JobTracker
from lakebed.ports.object_store import ObjectStore
from lakebed.ports.source_files import SourceFile, SourceFiles
from lakebed.sorted_files.sorting.stored_runs import StoredRun
from lakebed.statestore.log_entries.file_changes import AddFiles
from lakebed.statestore.open_table import OpenTable
from lakebed.statestore.table_state.leaves import Leaves, leaves_of, refuse_if_busy
from lakebed.tasks.user_jobs import Ingested, JobRun, UserJobs
from lakebed.user_files.csv_and_parquet import ParquetLayout, parquet_footer_bytes, parquet_layout
from lakebed.user_files.input_files import ExtraColumns, InputFile

FOOTER_BYTES = 64 * 1024
"""At the end of a Parquet file: mostly its whole footer."""

ROW_BYTES = 64
"""Of a row as stored, about: enough to distinguish large jobs from small ones."""


class Cluster(Protocol):
    """Runs tasks, each at least once, wherever it likes, and gives one answer of each.

    An attempt may be repeated, run twice at once, or be killed; whose answer is given, is whole.
    """

    @property
    def tasks_at_once(self) -> int:
        """How many tasks may run at the same time, about."""
        ...

    def sort(self, job: bytes, works: Sequence[bytes]) -> Iterable[bytes]:
        """Return what `DoTask.sort` answers for each, in any order.

        Raises:
            UnavailableError: the cluster gave the job up.
        """
        ...

    def merge(self, job: bytes, works: Sequence[bytes]) -> Iterable[bytes]:
        """Return what `DoTask.merge` answers for each, in any order. Raises: as `sort`."""
        ...


class Input(NamedTuple):
    """What is asked for.

    digest: stands for the request.
    find: returns its files; raises InvalidError for those that cannot be had. It is not called when
        the request was done before.
    sources: who has them.
    """

    digest: RequestDigest
    find: Callable[[], Sequence[InputFile]]
    sources: SourceFiles


class _Request(NamedTuple):
    files: Sequence[InputFile]
    sources: SourceFiles
    digest: RequestDigest
    cluster: Cluster
    extra_columns: ExtraColumns
    on_progress: Callable[[str], None]


class ImportRows:
    """Takes rows of files into a table by a cluster. Idempotent by job id; safe to kill
    anywhere."""

    def __init__(self, *, objects: ObjectStore, tracker: JobTracker, clock: Clock) -> None:
        self._objects = objects
        self._jobs = UserJobs("bulk import", tracker=tracker, clock=clock)

    def run(
        self,
        table: OpenTable,
        asked: Input,
        *,
        cluster: Cluster,
        job: JobId | None = None,
        extra_columns: ExtraColumns = "refuse",
        on_progress: Callable[[str], None] = lambda _: None,
    ) -> Ingested:
        """Take all rows of all files, once. job: the user's id; None: a fresh one, never repeated.
        on_progress: called with what is being done.

        Raises:
            InvalidError: the request can never work; it names the file. CorruptError: a run's bytes
                are others than were written. The table is as before.
            TableBusyError: compaction must catch up first.
            FencedError, ConflictError, UnavailableError: nothing became visible; run it again.
            UnknownOutcomeError: send it again with the id in the error's facts.
        """

        def take(run: JobRun) -> Ingested:
            files = asked.find()
            request = _Request(
                files, asked.sources, asked.digest, cluster, extra_columns, on_progress
            )
            return self._take(table, request, run)

        return self._jobs.run(table, job, asked.digest, take)

    def _take(self, table: OpenTable, request: _Request, run: JobRun) -> Ingested:
        files, cluster = request.files, request.cluster
        job, leaves = _planned(table, run, request)
        works = _sorts(request)
        sorted_runs: list[StoredRun] = []
        try:
            request.on_progress(f"sorting {len(files):,} files in {len(works):,} tasks")
            bodies = cluster.sort(encode(job), [encode(work) for work in works])
            answers, error = answers_in(bodies, RunSorted)
            sorted_runs += [
                answer.sorted_run for answer in answers if answer.sorted_run is not None
            ]
            if error is not None:
                raise error
            if sorted(answer.number for answer in answers) != list(range(len(works))):
                raise AssertionError("each task answers once")
            references = _merged(table, request, job, leaves, sorted_runs)
        finally:
            with suppress(LakebedError):  # what stays is swept
                self._objects.delete([one.path for one in sorted_runs])
        rows = sum(reference.rows for reference in references)
        filtered = sum(answer.filtered for answer in answers)
        change = AddFiles(tuple(references))
        commit = table.of_user(run.start, CommitId(run.job), request.digest, change)
        number = table.head.commit(commit)
        made = len({reference.file.name for reference in references})
        events.emit(
            events.BULK_IMPORT_COMMITTED,
            table=table.name,
            job=run.job,
            rows_count=rows,
            filtered_count=filtered,
            files_in_count=len(files),
            files_count=made,
            seconds=round(self._jobs.seconds(run), 3),
        )
        return Ingested(
            job=run.job,
            number=number,
            rows=rows,
            files=made,
            run=run.name,
            read=sum(answer.read for answer in answers),
            filtered=filtered,
        )


def _planned(table: OpenTable, run: JobRun, request: _Request) -> tuple[ImportJob, Leaves]:
    """Return what all tasks must know, and the leaves of the same state."""
    with table.head.reading() as state:
        leaves = leaves_of(state)
        processing = table.processing(state, "ingest")
        whole = None if processing is None else processing.processing
        text = table_text(state.schema(), whole)
        statistics = state.settings().value_statistics
    job = ImportJob(
        table=table.id,
        job=run.job,
        base=run.start.base,
        table_text=text,
        at=Micros(0) if processing is None else processing.at,
        points=tuple(key_range.min for key_range in leaves.key_ranges[1:]),
        extra_columns=request.extra_columns,
        value_statistics=statistics,
        rows_about=sum(file.size for file in request.files) // ROW_BYTES,
    )
    return job, leaves


def _merged(
    table: OpenTable,
    request: _Request,
    job: ImportJob,
    leaves: Leaves,
    sorted_runs: Sequence[StoredRun],
) -> list[FileReference]:
    """Return references to the files that the second stage made."""
    cluster = request.cluster
    counts = rows_by_key_range(sorted_runs, len(leaves.ids))
    with table.head.reading() as state:
        shared_file_rows_max = state.settings().shared_file_rows_max
        refuse_if_busy(state, leaves, counts)
    planned = plan_merges(
        sorted_runs,
        leaves.key_ranges,
        counts=counts,
        shared_file_rows_max=shared_file_rows_max,
        rows_each=file_rows(sum(counts), cluster.tasks_at_once),
    )
    request.on_progress(f"merging {sum(counts):,} rows into {len(planned):,} files")
    bodies = cluster.merge(encode(job), [encode(work) for _, work in planned])
    answers, error = answers_in(bodies, FileMerged)
    if error is not None:
        raise error
    if sorted(answer.number for answer in answers) != list(range(len(planned))):
        raise AssertionError("each task answers once")
    references: list[FileReference] = []
    for answer in answers:
        if answer.written is not None:  # processing left rows
            references += leaves.references(answer.written, planned[answer.number][0])
    return references


def _sorts(request: _Request) -> list[SortWork]:
    """Return the tasks of the first stage. Only of large files it is looked where they may be
    cut."""
    files = request.files
    bytes_each = sort_bytes(sum(file.size for file in files), request.cluster.tasks_at_once)
    looked = ((file, _layout(file, request.sources, bytes_each)) for file in files)
    return plan_sorts(looked, bytes_each)


def _layout(file: InputFile, sources: SourceFiles, bytes_each: int) -> ParquetLayout | None:
    if file.kind != "parquet" or file.size <= bytes_each:
        return None
    seen = SourceFile(file.path, file.size, file.version)
    try:
        return _layout_in(seen, sources)
    except LakebedError as error:
        error.facts["path"] = file.path
        raise


def _layout_in(file: SourceFile, sources: SourceFiles) -> ParquetLayout:
    """Return where the row groups of a file lie, by its last bytes: more of them if these are not
    the whole footer."""
    tail = (max(0, file.size - FOOTER_BYTES), file.size)
    with sources.on_disk(file, (tail,)) as path:
        footer = parquet_footer_bytes(path)
        if footer <= FOOTER_BYTES:
            return parquet_layout(path)
    whole = (max(0, file.size - footer), file.size)
    with sources.on_disk(file, (whole,)) as path:
        return parquet_layout(path)
