"""Takes rows into a table, clears it, and lists its jobs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Unpack

from lakebed.errors import InvalidError
from lakebed.face.deleting_table import DeletingTable
from lakebed.ingest.sources import (
    ArrowSource,
    FileSource,
    IngestOptions,
    WatchedSource,
    source_of,
)
from lakebed.model.names import job_id
from lakebed.model.partitions import split_points_of
from lakebed.ports.job_tracker import JobReport
from lakebed.tables.change_table import (
    clear_table,
)
from lakebed.tasks.user_jobs import Ingested


class WrittenTable(DeletingTable):
    """A table that rows are put into."""

    def clear(
        self, *, split_points: Sequence[object] | None = None, from_start: bool = False
    ) -> None:
        """Remove all rows. Jobs that have begun before raise GenerationError: run them again.

        split_points: of a new partition tree; none at all: one leaf; None keeps the partitions.
        from_start: feeds take their sources from the beginning again; else they go on.

        Raises:
            InvalidError: a split point that is not allowed; the table is as before.
        """
        points = None if split_points is None else split_points_of(self.schema, split_points)
        clear_table(self._opened, points, from_start=from_start)

    def ingest(
        self,
        rows: object,
        *,
        job: str | None = None,
        on_progress: Callable[[int], None] | None = None,
        written: Callable[[int, int], None] = lambda _done, _total: None,
        queued: bool = False,
        **options: Unpack[IngestOptions],
    ) -> Ingested:
        """Take rows in, all or none, durably.

        rows: a path of a file (Parquet, CSV, JSON), of a directory of them, or a pattern; `s3://`
            with a file or a folder, `https://` with a file; several of these; an open file, a list
            of dicts, or Arrow data (also pandas, Polars, DuckDB).
        job: a name for this request; the same request under the same name is done once, for
            `job_id_seconds_min`.
        on_progress: called with the number of rows that were read so far.
        written: called with the rows written so far, and all.
        queued: send the commit, which `lake.run()` puts into the log with more of them; `jobs`
            tells of it.
        options: how rows are read.

        Raises:
            InvalidError: the rows or files do not fit; the table is as before.
            TableBusyError: compaction must catch up first (`lake.run()`); nothing was written.
            GenerationError: the table was cleared meanwhile; nothing became visible.
            FencedError, ConflictError, UnavailableError: nothing became visible; call again.
            UnknownOutcomeError: call again with the job in its facts; it is done once.
        """
        source = source_of(rows, self.schema, urls=self._app.url_files(), **options)
        watched = source if on_progress is None else WatchedSource(source, on_progress)
        try:
            service = self._app.queued_ingest if queued else self._app.ingest
            id_ = None if job is None else job_id(job)
            done = service.run(self._opened, watched, id_, written=written)
            return done if isinstance(source, ArrowSource) else source.with_skipped(done)
        except InvalidError as error:
            if isinstance(source, FileSource) and source.reading is not None:
                error.facts.setdefault("path", source.reading)
            raise

    def upsert(
        self, rows: object, *, job: str | None = None, **options: Unpack[IngestOptions]
    ) -> Ingested:
        """Take rows in that replace those with the same keys, all or none: an ingest into a table
        whose processing is `latest`, which shows of equal keys the row with the greatest sequence.

        rows, job, options: as `ingest` takes them.

        Raises:
            InvalidError: the table keeps all rows of a key; nothing was written. What `ingest`
                raises.
        """
        processing = self.processing
        if processing is None or processing.latest is None:
            latest = "lakebed.Processing(latest=lakebed.Latest(FIELD))"
            hint = f"create it with processing={latest}, or call change_processing({latest}) on it"
            raise InvalidError("the table keeps all rows of a key", table=self.name, hint=hint)
        return self.ingest(rows, job=job, **options)

    def jobs(
        self,
        *,
        job: str | None = None,
        events: Sequence[str] = (),
        since_seconds: float | None = None,
        limit: int = 20,
    ) -> list[JobReport]:
        """Return the newest report of each job, newest first. Hints: truth is in the state.

        job: all reports of that one instead, of all its runs, oldest first.
        events: only those that tell of one of these; none: of any.
        since_seconds: only reports that are at most this many seconds old; None: of any age.

        Raises:
            InvalidError: there is no such event.
        """
        return self._app.inspection.job_history().find(
            self._opened.id, job=job, events=events, since_seconds=since_seconds, limit=limit
        )
