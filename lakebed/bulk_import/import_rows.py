"""Bulk import: one job is one commit, like ingest, but a cluster sorts and merges."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import NamedTuple

from lakebed.bulk_import.merge_and_commit import MergeAndCommit
from lakebed.bulk_import.place_rows import PlaceRows
from lakebed.bulk_import.plan import plan_sorts, sort_bytes
from lakebed.bulk_import.work import (
    BegunImport,
    Cluster,
    ImportJob,
    RunSorted,
    SortWork,
    answers_in,
    check_numbers,
    encode,
)
from lakebed.errors import LakebedError
from lakebed.model.names import JobId, Micros, RequestDigest
from lakebed.model.table_text import table_text
from lakebed.observe import events, usage
from lakebed.observe.usage import counted_as
from lakebed.ports.clock import Clock
from lakebed.ports.job_tracker import JobTracker
from lakebed.ports.object_store import ObjectStore
from lakebed.ports.sorted_files import FilesWithSamples
from lakebed.ports.source_files import SourceFile, SourceFiles
from lakebed.sorted_files.sorting.stored_runs import StoredRun
from lakebed.statestore.open_table import OpenTable
from lakebed.statestore.table_state.leaves import leaves_of
from lakebed.tasks.budgets import Budgets
from lakebed.tasks.user_jobs import Ingested, JobRun, UserJobs
from lakebed.user_files.csv_and_parquet import ParquetLayout, parquet_footer_bytes, parquet_layout
from lakebed.user_files.input_files import ExtraColumns, InputFile

FOOTER_BYTES = 64 * 1024
"""Bytes that are read from the end of a Parquet file: mostly its whole footer."""

ROW_BYTES = 64
"""Rough size of a stored row, in bytes: enough to distinguish large jobs from small ones."""


class Input(NamedTuple):
    """The requested input of a bulk import.

    digest: stands for the request.
    find: returns its files; raises InvalidError for those that cannot be had. It is not called when
        the request was done before.
    sources: who has them.
    """

    digest: RequestDigest
    find: Callable[[], Sequence[InputFile]]
    sources: SourceFiles


class _Request(NamedTuple):
    """Files, and who sorts and merges their rows."""

    files: Sequence[InputFile]
    sources: SourceFiles
    cluster: Cluster


class ImportRows:
    """Takes rows into a table by a cluster. Idempotent by job id; safe to kill anywhere.

    files: of leaves that hold rows, whose samples say how they are split with those that come.
    """

    def __init__(
        self,
        *,
        objects: ObjectStore,
        files: FilesWithSamples,
        tracker: JobTracker,
        clock: Clock,
        budgets: Budgets | None = None,
    ) -> None:
        self._budgets = budgets
        self._objects = objects
        self._second = MergeAndCommit(PlaceRows(files))
        self._jobs = UserJobs("bulk import", tracker=tracker, clock=clock)

    @counted_as("bulk-import")
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
        """Take all rows of all files, once.

        job: the user's id; None: a fresh one, never repeated.
        on_progress: called with what is being done.

        Raises:
            InvalidError: the request can never work, it names the file; or the table's budget of
                this month is spent. CorruptError: a run's bytes are others than were written. The
                table is as before.
            TableBusyError: compaction must catch up first.
            FencedError, ConflictError, UnavailableError: nothing became visible; run it again.
            UnknownOutcomeError: send it again with the id in the error's facts.
        """

        def take(run: JobRun) -> Ingested:
            files = asked.find()
            size = sum(file.size for file in files)
            begun = _planned(table, run, asked.digest, extra_columns, size // ROW_BYTES)
            works = _sorts(_Request(files, asked.sources, cluster))
            on_progress(f"sorting {len(files):,} files in {len(works):,} tasks")
            bodies = cluster.sort(encode(begun.job), [encode(work) for work in works])
            sorted_ = _Sorted(bodies, tasks=len(works), files=len(files))
            return self._merge(table, begun, sorted_, cluster, on_progress)

        return self._jobs.run(table, job, asked.digest, take, budgets=self._budgets)

    def begin(
        self,
        table: OpenTable,
        digest: RequestDigest,
        *,
        job: JobId | None = None,
        extra_columns: ExtraColumns = "refuse",
    ) -> BegunImport | Ingested:
        """Begin a job whose first stage the caller does, by `DoTask.sort_frame`; or return what
        became of it when it was done before. End it by `finish` or `give_up`.

        Raises:
            JobIdReusedError: the id stands for another request.
            InvalidError: the table's budget of this month is spent.
        """
        run = self._jobs.begin(table, job, digest, budgets=self._budgets)
        if isinstance(run, Ingested):
            return run
        return _planned(table, run, digest, extra_columns, 0)

    def finish(
        self,
        table: OpenTable,
        begun: BegunImport,
        bodies: Iterable[bytes],
        *,
        cluster: Cluster,
        on_progress: Callable[[str], None] = lambda _: None,
    ) -> Ingested:
        """Take the rows of a job that was begun. bodies: one answer of each part of the rows.

        Raises:
            As `run`.
        """

        def take(_: JobRun) -> Ingested:
            return self._merge(table, begun, _Sorted(bodies), cluster, on_progress)

        return self._jobs.end(table, begun.run, take)

    def give_up(
        self, table: OpenTable, begun: BegunImport, bodies: Iterable[bytes], error: LakebedError
    ) -> None:
        """End a job that was begun without its rows, and report why, unless its end was reported.
        bodies: answers that there are."""
        answers, _ = answers_in(bodies, RunSorted)
        self._delete([one.sorted_run for one in answers if one.sorted_run is not None])
        self._jobs.give_up(table, begun.run, error)

    def _merge(
        self,
        table: OpenTable,
        begun: BegunImport,
        given: _Sorted,
        cluster: Cluster,
        on_progress: Callable[[str], None],
    ) -> Ingested:
        """Do the second stage, and commit."""
        answers, error = answers_in(given.bodies, RunSorted)
        sorted_runs = [one.sorted_run for one in answers if one.sorted_run is not None]
        try:
            if error is not None:
                raise error
            check_numbers([answer.number for answer in answers], given.tasks)
            files = self._second.merge(table, begun, sorted_runs, cluster, on_progress)
        finally:
            self._delete(sorted_runs)
        committed = self._second.commit(table, begun, files)
        run = begun.run
        done = Ingested(
            job=run.job,
            number=committed.number,
            rows=sum(one.written.rows for one in files),
            files=len({one.file.name for one in files}),
            run=run.name,
            read=sum(answer.read for answer in answers),
            filtered=sum(answer.filtered for answer in answers),
        )
        usage.count("rows_in", done.rows)
        events.emit(
            events.BULK_IMPORT_COMMITTED,
            table=table.name,
            job=run.job,
            rows_count=done.rows,
            filtered_count=done.filtered,
            files_in_count=given.files,
            files_count=done.files,
            seconds=round(self._jobs.seconds(run), 3),
        )
        return done

    def _delete(self, sorted_runs: Sequence[StoredRun]) -> None:
        with suppress(LakebedError):  # what stays is swept
            self._objects.delete([one.path for one in sorted_runs])


class _Sorted(NamedTuple):
    """The result of the first stage, which sorts.

    bodies: answers of its tasks.
    tasks: how many there were; None: some may not have begun, as they had no rows.
    files: that the rows came from.
    """

    bodies: Iterable[bytes]
    tasks: int | None = None
    files: int = 0


def _planned(
    table: OpenTable,
    run: JobRun,
    digest: RequestDigest,
    extra_columns: ExtraColumns,
    rows_about: int,
) -> BegunImport:
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
        extra_columns=extra_columns,
        value_statistics=statistics,
        rows_about=rows_about,
    )
    return BegunImport(run, digest, job, leaves)


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
