"""Yields the rows of one version of a table in key order, as a stream that reads only what it
yields."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Generic, TypeVar

import msgspec

from lakebed.config.settings import TableSettings
from lakebed.errors import (
    CorruptError,
    InvalidError,
    ObjectMissingError,
    QueryTooLargeError,
    VersionExpiredError,
)
from lakebed.model.disk_errors import out_of_memory
from lakebed.model.files import FilePart
from lakebed.model.names import FileName, TransactionNumber
from lakebed.model.processing import IteratorUse, ProcessingPass
from lakebed.model.samples import Sample
from lakebed.model.schema import Schema
from lakebed.model.versions import AsOf
from lakebed.observe import usage
from lakebed.ports.sorted_files import ReadFigures, Selection, SortedFiles
from lakebed.query.asked_files import AskedKeys, LeafFiles, leaves_of, parts_of
from lakebed.query.conditions import everything_of
from lakebed.query.explanation import QueryExplanation
from lakebed.query.past_versions import PastVersions
from lakebed.query.scan_caps import RequestPrice, check_scan, scan_cap, stopped_scan
from lakebed.statestore.log_entries.version_changes import expired
from lakebed.statestore.open_table import OpenTable, again_if_damaged
from lakebed.statestore.table_state.kept_versions import is_kept
from lakebed.statestore.table_state.state import TableState
from lakebed.tasks.budgets import Budgets, check_budget, stops_work

BatchT = TypeVar("BatchT")


class QueryPlan(msgspec.Struct, frozen=True):
    """The files that answer a query: leaves in key order, the parts of files in each.

    leaves_reached, files_reached: before files were left out by the bounds of their keys.
    scan_bytes_max: may be read; 0: any number of bytes.
    is_past: an older version was asked for.
    settings: of the table at that version.
    """

    number: TransactionNumber
    schema: Schema
    leaves: tuple[tuple[FilePart, ...], ...]
    condition: Selection | None
    leaves_reached: int = 0
    files_reached: int = 0
    processing: ProcessingPass | None = None
    scan_bytes_max: int = 0
    is_past: bool = False
    settings: TableSettings | None = None


class RunQuery(Generic[BatchT]):
    """Reads a table. Right during compaction, split and collection: a version never changes.
    past: gives older versions; None: only the newest can be read. price: of a request, for who is
    told what a query would cost; None: there is none. budgets: None: none stops a query."""

    def __init__(
        self,
        *,
        files: SortedFiles[BatchT],
        past: PastVersions | None = None,
        price: RequestPrice | None = None,
        budgets: Budgets | None = None,
    ) -> None:
        self._files = files
        self._past = past
        self._price = price
        self._budgets = budgets

    def run(
        self,
        table: OpenTable,
        condition: Selection | None = None,
        *,
        limit: int | None = None,
    ) -> Iterator[BatchT]:
        """Yield the rows that were committed when this was called, by row keys, then sort keys.

        Raises:
            InvalidError: a limit below 0.
            VersionExpiredError: while reading: the version was collected as garbage; run it again.
            CorruptError: while reading: a file of a living version is missing or damaged.
            UnavailableError: while reading: there is not enough memory.
        """
        return self.read(table, self.plan(table, lambda _: condition), limit=limit)

    def rows(self, batch: BatchT) -> int:
        """Return how many rows a batch has that this has yielded."""
        return self._files.rows(batch)

    def plan(
        self,
        table: OpenTable,
        ask: Callable[[Schema], Selection | None],
        *,
        scan_bytes_max: int | None = None,
        as_of: AsOf | None = None,
    ) -> QueryPlan:
        """Return which files answer a query. ask: gives the condition, in the words of the schema
        of just that version. scan_bytes_max: less than the table allows. as_of: the version; None:
        the newest.

        Raises:
            VersionExpiredError: the version is not kept any more. InvalidError: there is none such.
        """
        with usage.work("query", table.id):
            usage.count("queries")
            return again_if_damaged(lambda: self._plan(table, ask, scan_bytes_max, as_of))

    @contextmanager
    def version(self, table: OpenTable, as_of: AsOf | None = None) -> Iterator[TableState]:
        """Give the state of a version. Close it soon. Raises: as `plan`."""
        if as_of is None:
            with table.head.reading() as state:
                yield state
        else:
            assert self._past is not None, "who asks for a past version gives it"
            with self._past.reading(table, as_of) as state:
                yield state

    def check_budget(self, table: OpenTable, plan: QueryPlan) -> None:
        """Refuse a user's query that the table's budget has no more for. Raises: InvalidError."""
        settings = plan.settings
        if self._budgets is not None and settings is not None and stops_work(settings):
            files = {part.path: part.file.size for parts in plan.leaves for part in parts}
            check_budget(self._budgets, table, settings, reads=sum(files.values()))

    def check_kept(self, table: OpenTable, plan: QueryPlan) -> QueryPlan:
        """Return a plan of an older version, all of whose files are kept. Raises: as `plan`."""
        assert self._past is not None, "who asks for a past version gives it"
        files = (part.file.name for parts in plan.leaves for part in parts)
        self._past.check_files(table, plan.number, files)
        return msgspec.structs.replace(plan, is_past=True)

    def _plan(
        self,
        table: OpenTable,
        ask: Callable[[Schema], Selection | None],
        scan_bytes_max: int | None,
        as_of: AsOf | None,
    ) -> QueryPlan:
        with self.version(table, as_of) as state:
            schema = state.schema()
            plan = plan_query(state, table, schema, ask(schema))
            at = None if as_of is None else state.head().at
            processing = table.processing(state, "query", at=at)
            settings = state.settings()
            cap = scan_cap(settings.scan_bytes_max, scan_bytes_max)
            plan = msgspec.structs.replace(
                plan, processing=processing, scan_bytes_max=cap, settings=settings
            )
        return plan if as_of is None else self.check_kept(table, plan)

    def read(
        self,
        table: OpenTable,
        plan: QueryPlan,
        *,
        limit: int | None = None,
        figures: ReadFigures | None = None,
        iterator: IteratorUse | None = None,
        job_rows: int = 0,
    ) -> Iterator[BatchT]:
        """Yield the rows of a plan, as `run` does. figures: where it counts what that costs, with
        the cap of the plan.

        iterator: a user's step on all rows, the last one. job_rows: as `SortedFiles.read` has it.

        Raises:
            QueryTooLargeError: also while reading: it reads more bytes than the plan allows.
        """
        figures = self._allowed(table, plan, limit, figures, in_order=True)
        if iterator is None:
            return self._first(limit, self._rows(table, plan, figures, job_rows=job_rows))
        return self._first(limit, self._iterated(table, plan, figures, iterator))

    def sample(self, table: OpenTable, plan: QueryPlan, part: FilePart) -> Sample:
        """Return the sample of a file of a plan, inside the part's range. Reads its tail only.

        Raises:
            As `run` while reading.
        """
        with self.explained_errors(table, plan):
            return self._files.sample(plan.schema, part)

    def explain(
        self,
        table: OpenTable,
        ask: Callable[[Schema], Selection | None],
        *,
        limit: int | None = None,
        scan_bytes_max: int | None = None,
        as_of: AsOf | None = None,
        monotonic: Callable[[], float],
    ) -> QueryExplanation:
        """Run a query, throw its rows away, and tell what it read. ask, as_of: as in `plan`;
        monotonic: seconds.

        Raises:
            As `run`, and what it raises while reading.
        """
        began = monotonic()
        plan = self.plan(table, ask, scan_bytes_max=scan_bytes_max, as_of=as_of)
        figures = ReadFigures(monotonic, bytes_max=plan.scan_bytes_max)
        figures.seconds["state"] = monotonic() - began
        with figures.timed("total"):
            batches = self.read(table, plan, limit=limit, figures=figures)
            rows = sum(self._files.rows(batch) for batch in batches)
        figures.seconds["total"] += figures.seconds["state"]
        return self.explanation(table, plan, rows=rows, figures=figures, as_of=as_of)

    def explanation(
        self,
        table: OpenTable,
        plan: QueryPlan,
        *,
        rows: int,
        figures: ReadFigures,
        as_of: AsOf | None = None,
    ) -> QueryExplanation:
        """Return what reading a plan took. rows: that it gave; figures: what was counted."""
        with self.version(table, as_of) as state:
            leaves = state.leaf_figures()
        return QueryExplanation(
            table=table.name,
            number=plan.number,
            rows=rows,
            leaves=len(leaves),
            leaves_reached=plan.leaves_reached,
            files=sum(leaf.files for leaf in leaves),
            files_reached=plan.files_reached,
            files_matching=sum(len(parts) for parts in plan.leaves),
            milliseconds={name: round(s * 1000, 3) for name, s in figures.seconds.items()},
            **figures.counts(),
        )

    def scan(
        self,
        table: OpenTable,
        plan: QueryPlan,
        *,
        limit: int | None = None,
        figures: ReadFigures | None = None,
    ) -> Iterator[BatchT]:
        """Yield the rows of a plan in any order. figures: where it counts what that costs.

        Raises:
            As `run`.
        """
        figures = self._allowed(table, plan, limit, figures, in_order=False)
        return self._first(limit, self._rows(table, plan, figures, in_order=False))

    def _allowed(
        self,
        table: OpenTable,
        plan: QueryPlan,
        limit: int | None,
        figures: ReadFigures | None,
        *,
        in_order: bool,
    ) -> ReadFigures:
        """Refuse what may not be read; return where reading is counted, and held to its cap."""
        if limit is not None and (type(limit) is not int or limit < 0):
            hint = "give a number of rows, 0 or more, or None for all"
            raise InvalidError("not a limit", limit=limit, hint=hint)
        if limit is None:
            asked = plan.schema, plan.condition, plan.processing
            share_of = partial(self._files.share_read, *asked, in_order=in_order)
            with self.explained_errors(table, plan):
                check_scan(table.name, plan, share_of=share_of, price=self._price)
        return figures or ReadFigures(bytes_max=plan.scan_bytes_max)

    def _rows(
        self,
        table: OpenTable,
        plan: QueryPlan,
        figures: ReadFigures,
        *,
        in_order: bool = True,
        job_rows: int = 0,
    ) -> Iterator[BatchT]:
        read = partial(self._files.read, job_rows=job_rows) if in_order else self._files.scan
        with self.explained_errors(table, plan):
            batches = read(plan.schema, plan.leaves, plan.condition, figures, plan.processing)
            yield from usage.each("query", table.id, self._counted(batches))

    def _counted(self, batches: Iterator[BatchT]) -> Iterator[BatchT]:
        for batch in batches:
            usage.count("rows_read", self._files.rows(batch))
            yield batch

    @contextmanager
    def explained_errors(self, table: OpenTable, plan: QueryPlan) -> Iterator[None]:
        """Raise what goes wrong while files of a plan are read as `run` tells it."""
        try:
            yield
        except ObjectMissingError as error:
            raise self._explained(table, plan, error) from error
        except CorruptError as error:
            hint = f"`lakebed fsck --deep {table.name}` finds it; restore the object from a copy"
            facts = {"table": table.name, **error.facts}
            raise CorruptError(error.message, hint=hint, **facts) from error
        except QueryTooLargeError as error:
            if "table" in error.facts:  # refused before it read
                raise
            raise stopped_scan(error, table.name, plan) from error
        except MemoryError as error:
            raise out_of_memory(error) from error

    def _iterated(
        self, table: OpenTable, plan: QueryPlan, figures: ReadFigures, use: IteratorUse
    ) -> Iterator[BatchT]:
        """Give a user's iterator all columns, then select those that are asked for."""
        condition = plan.condition
        columns = None if condition is None else condition.columns
        if condition is not None:
            of_all = msgspec.structs.replace(condition, columns=None)
            plan = msgspec.structs.replace(plan, condition=of_all)
        rows = self._rows(table, plan, figures)
        for batch in self._files.iterated(plan.schema, rows, use):
            yield batch if columns is None else self._files.select(plan.schema, batch, columns)

    def _first(self, limit: int | None, batches: Iterator[BatchT]) -> Iterator[BatchT]:
        """Yield the first rows, and stop reading then."""
        left = limit
        while (left is None or left > 0) and (batch := next(batches, None)) is not None:
            if left is not None:
                batch = self._files.head(batch, min(left, self._files.rows(batch)))
                left -= self._files.rows(batch)
            yield batch

    def _explained(
        self, table: OpenTable, plan: QueryPlan, error: ObjectMissingError
    ) -> VersionExpiredError | CorruptError:
        """Return what a missing file means: it was collected, or is lost; the newest state tells
        which (H24)."""
        path = error.facts.get("path")
        names = {part.path: part.file.name for parts in plan.leaves for part in parts}
        with table.head.reading() as state:
            dropped = state.head().dropped
            referenced = not dropped and _is_referenced(state, names.get(str(path)))
            if plan.is_past and not dropped:
                referenced = referenced or is_kept(state, plan.number)
            past = expired(state, plan.number) if plan.is_past else None
        if referenced:
            hint = f"run `lakebed fsck {table.name}`; restore the object from a copy"
            return CorruptError(
                "a file of the table is missing", table=table.name, path=path, hint=hint
            )
        if past is not None:
            return past
        hint = "run the query again"
        return VersionExpiredError("the version was collected", number=plan.number, hint=hint)


def plan_query(
    state: TableState, table: OpenTable, schema: Schema, condition: Selection | None
) -> QueryPlan:
    """Return the files of a version that may hold rows of a condition.

    Raises:
        TableMissingError: the table was dropped.
    """
    boxes = (everything_of(schema),) if condition is None else condition.reached
    asked = AskedKeys(schema, boxes)
    leaves = leaves_of(state, asked)
    return plan_of(table, asked, leaves, QueryPlan(state.head().number, schema, (), condition))


def plan_of(
    table: OpenTable, asked: AskedKeys, leaves: Sequence[LeafFiles], plan: QueryPlan
) -> QueryPlan:
    """Return a plan with those files of some leaves that may hold what is asked for."""
    return msgspec.structs.replace(
        plan,
        leaves=parts_of(table, asked, leaves),
        leaves_reached=len(leaves),
        files_reached=sum(len(leaf.references) for leaf in leaves),
    )


def _is_referenced(state: TableState, file: FileName | None) -> bool:
    return file is not None and bool(state.references_of(file))
