"""A table of a lake, as callers of the library see it. Rows come and go as Arrow."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

import pyarrow as pa
import pyarrow.compute as pc

from lakebed.bootstrap.fed_table import FedTable
from lakebed.bootstrap.housekeeping import Housekeeping, WorkDone
from lakebed.config.settings import TableSettings
from lakebed.errors import InvalidError
from lakebed.ingest.sources import (
    ArrowSource,
    FileSource,
    IngestOptions,
    WatchedSource,
    source_of,
)
from lakebed.model.keys import KeyValue
from lakebed.model.names import TableName, TransactionNumber, job_id
from lakebed.model.partitions import split_points_in, split_points_of
from lakebed.model.predicates.language import Predicate
from lakebed.model.processing import Processing, iterator_use
from lakebed.model.schema import Schema
from lakebed.ports.job_tracker import JobReport
from lakebed.processing.iterators import load_iterator
from lakebed.query.explanation import QueryExplanation
from lakebed.query.frames import as_pandas, as_polars
from lakebed.query.run_query import condition_of
from lakebed.sorted_files.format.arrow_schema import arrow_schema
from lakebed.statestore.snapshots import Snapshots
from lakebed.tables.change_table import (
    TableHistory,
    change_fields,
    change_processing,
    change_settings,
    clear_table,
    history,
)
from lakebed.tables.definition import definition_of
from lakebed.tasks.failed_work import FailedWork
from lakebed.tasks.user_jobs import Ingested

if TYPE_CHECKING:
    import polars

    from lakebed.inspection.log_listing import LogListing
    from lakebed.inspection.past_state import StateShown


class Table(FedTable):
    """A table of a lake: rows sorted by key."""

    def __repr__(self) -> str:
        keys = ", ".join(f.name for f in self.schema.row_keys)
        return f"<lakebed table {self.name!r} by {keys}>"

    @property
    def name(self) -> TableName:
        """The table's name."""
        return self._opened.name

    @property
    def schema(self) -> Schema:
        """Row keys, sort keys and values."""
        return self._opened.schema

    @property
    def arrow_schema(self) -> pa.Schema:
        """The columns that queries give, as Arrow has them."""
        return arrow_schema(self.schema)

    @property
    def processing(self) -> Processing | None:
        """What the table does with its rows; None: it keeps all as they are."""
        with self._opened.head.reading() as state:
            return state.processing()

    @property
    def split_points(self) -> list[KeyValue | tuple[KeyValue, ...]]:
        """Where leaves begin; `create_table` makes the same leaves of it."""
        with self._opened.head.reading() as state:
            return split_points_in(state.tree(), state.schema())

    @property
    def definition(self) -> dict[str, Any]:
        """All that makes an empty table like this one, as JSON values: schema, split points,
        settings and processing. `Lake.create_table_from` takes it."""
        return definition_of(self._opened)

    @property
    def settings(self) -> TableSettings:
        """The table's settings."""
        return self._opened.settings()

    def change_settings(self, /, **changes: Any) -> TableSettings:  # noqa: ANN401 - as each is
        """Give settings new values, for all who work on the table. Returns all settings.

        Raises:
            InvalidError: an unknown setting, a value out of bounds; nothing was changed.
        """
        change_settings(self._opened, changes)
        return self.settings

    def change_fields(
        self,
        *,
        add: Mapping[str, object] | None = None,
        rename: Mapping[str, str] | None = None,
        drop: Sequence[str] = (),
        widen: Mapping[str, object] | None = None,
    ) -> Schema:
        """Change fields, all at once, without rewriting a file. Returns the newest schema.

        Names are those of before. Keys may only be renamed.

        add: types of new value fields, nullable: `"float64?"`.
        rename: new names.
        widen: wider types of value fields.

        Raises:
            InvalidError: an unknown field, a change that is not allowed.
            ConflictError: another process changed fields meanwhile. Nothing was changed.
        """
        return change_fields(
            self._opened, add=add or {}, rename=rename or {}, drop=drop, widen=widen or {}
        )

    def add_field(self, name: str, type_: object) -> Schema:
        """Add a nullable value field, null in all rows there are. Raises as `change_fields`."""
        return self.change_fields(add={name: type_})

    def rename_field(self, name: str, to: str) -> Schema:
        """Give a field, also a key, another name. Raises as `change_fields`."""
        return self.change_fields(rename={name: to})

    def drop_field(self, name: str) -> Schema:
        """Drop a value field: its values are read no more. Raises as `change_fields`."""
        return self.change_fields(drop=[name])

    def widen_field(self, name: str, type_: object) -> Schema:
        """Give a value field a type that holds more. Raises as `change_fields`."""
        return self.change_fields(widen={name: type_})

    def change_processing(self, processing: Processing | None) -> Processing | None:
        """Do something else with rows from now on, None: nothing; also with those that are there,
        where that is right: a filter becomes stricter, age-off gets other seconds, and what merges
        rows is added. Returns what is done now. A table without rows takes every processing.

        Raises:
            InvalidError: it is not allowed, or not right for rows that are there; an iterator that
                is not installed. Nothing was changed.
        """
        if processing is not None and processing.iterator is not None:
            load_iterator(processing.iterator, self.arrow_schema)
        change_processing(self._opened, processing)
        return self.processing

    def history(self) -> TableHistory:
        """Return creation, clears, changes of settings and fields, as far as the log is kept."""
        return history(self._app.logs.open(self._opened.id))

    def log(self, *, after: int | None = None, entries_max: int = 50) -> LogListing:
        """Return entries of the log, readable. after: the number before the first; None: the last.

        Raises:
            LogTruncatedError: entries that far back are gone: the hint says what is kept.
        """
        from lakebed.inspection.log_listing import list_log  # noqa: PLC0415  of no use to a lookup

        number = None if after is None else TransactionNumber(after)
        return list_log(self._app.logs.open(self._opened.id), after=number, entries_max=entries_max)

    def state(self, *, number: int | None = None, files_max: int = 0) -> StateShown:
        """Return what the state at an entry of the log holds.

        number: None for the newest.
        files_max: of references that are listed.

        Raises:
            InvalidError: no such entry, or no snapshot and log reach back to it.
        """
        from lakebed.inspection.past_state import (  # noqa: PLC0415  of no use to a lookup
            show_state,
            state_at,
        )

        log, snapshots = self._app.logs.open(self._opened.id), self._snapshots()
        wanted = None if number is None else TransactionNumber(number)
        return show_state(state_at(log, snapshots, wanted), self.name, files_max=files_max)

    def write_snapshot(self) -> int:
        """Write a snapshot of the newest state, unless it is there. Returns the state's number."""
        with self._opened.head.reading() as state:
            return self._snapshots().write(state)

    def _snapshots(self) -> Snapshots:
        return self._app.heads.snapshots(self._opened.id)

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

    def query(
        self,
        *,
        keys: Sequence[object] | None = None,
        ranges: Sequence[Mapping[str, object]] | Mapping[str, object] | None = None,
        columns: Sequence[str] | None = None,
        where: Predicate | pc.Expression | None = None,
        limit: int | None = None,
        iterator: tuple[str, Mapping[str, Any]] | None = None,
    ) -> pa.RecordBatchReader:
        """Return the rows of one version, in key order, as a stream that reads what is asked of it.

        keys: exact row keys: values, or tuples where there are several key fields (fewer values
            match all keys that begin with them).
        ranges: by key field, `Range(min, max)` or a pair, half open; several are a union; any of
            the row keys may be named.
        columns: None for all.
        where: only rows that it keeps: `lakebed.field("fare") >= 4`, or an expression of Arrow.
        limit: rows at the most.
        iterator: a step on the rows, by the name of its entry point and its configuration.

        Raises:
            InvalidError: an unknown field, a wrong type, reversed ends, no such iterator.
            IteratorError: while reading: it failed.
            VersionExpiredError: while reading: too slow, the version was collected; query again.
        """
        plan = self._app.query.plan(
            self._opened,
            partial(condition_of, keys=keys, ranges=ranges, columns=columns, where=where),
        )
        whole = arrow_schema(plan.schema)
        given = whole if columns is None else pa.schema([whole.field(name) for name in columns])
        use = None if iterator is None else iterator_use(iterator)
        if use is not None:
            load_iterator(use, whole)
        batches = self._app.query.read(self._opened, plan, limit=limit, iterator=use)
        return pa.RecordBatchReader.from_batches(given, batches)

    def count(
        self,
        *,
        keys: Sequence[object] | None = None,
        ranges: Sequence[Mapping[str, object]] | Mapping[str, object] | None = None,
        where: Predicate | pc.Expression | None = None,
    ) -> int:
        """Return how many rows `query` gives with the same arguments. Without any the table's state
        knows it, where rows are kept as they came: no file is read, but for parts of files that a
        split has cut since. Otherwise one column is read. `len(table)` is the same without any.
        """
        if keys is None and ranges is None and where is None:
            return self._app.count.all_rows(self._opened)
        ask = partial(condition_of, keys=keys, ranges=ranges, where=where)
        return self._app.count.matching(self._opened, ask)

    def __len__(self) -> int:
        return self.count()

    def __bool__(self) -> bool:
        """A table is true, also without rows: counting them would cost too much."""
        return True

    def head(self, rows: int = 5) -> pa.Table:
        """Return the first rows by key."""
        return self.to_arrow(limit=rows)

    def to_arrow(self, **asked: Any) -> pa.Table:  # noqa: ANN401 - as `query` has them
        """Return all rows of a query in memory. Takes what `query` takes, and raises the same."""
        return self.query(**asked).read_all()

    def to_pandas(self, **asked: Any) -> Any:  # noqa: ANN401 - a DataFrame
        """Return them as a DataFrame of pandas. Raises: InvalidError too, where it is missing."""
        return as_pandas(self.query(**asked))

    def to_polars(self, **asked: Any) -> polars.DataFrame:  # noqa: ANN401 - as `query` has them
        """Return them as a DataFrame of Polars. Raises: InvalidError too, where it is missing."""
        return as_polars(self.query(**asked))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Give all rows to whatever reads Arrow's streams: `polars.DataFrame(table)`, DuckDB."""
        return self.query().__arrow_c_stream__(requested_schema)

    def explain(
        self,
        *,
        keys: Sequence[object] | None = None,
        ranges: Sequence[Mapping[str, object]] | Mapping[str, object] | None = None,
        columns: Sequence[str] | None = None,
        where: Predicate | pc.Expression | None = None,
        limit: int | None = None,
    ) -> QueryExplanation:
        """Run a query, throw its rows away, and return what it read and how long that took.

        Takes what `query` takes, and raises what it raises. `print` shows the answer as lines.
        """
        return self._app.query.explain(
            self._opened,
            partial(condition_of, keys=keys, ranges=ranges, columns=columns, where=where),
            limit=limit,
            monotonic=self._app.clock.monotonic,
        )

    def compact(
        self,
        *,
        should_stop: Callable[[], bool] = lambda: False,
        on_progress: Callable[[str], None] = lambda _: None,
        failed: Callable[[FailedWork], None] | None = None,
    ) -> WorkDone:
        """Merge until each leaf has one file. The arguments, and what is raised, are those of
        `Lake.run`."""
        names = [e.name for e in self._app.catalog.list() if e.id == self._opened.id]
        work = Housekeeping(self._app, on_progress=on_progress)
        return work.run(names, everything=True, should_stop=should_stop, failed=failed)
