"""Export: rows of one version of a table become files of Parquet and a manifest, in key order.

First a pin, then the plan, then each slice's file and note, then the manifest. Each is put if
absent, under a name that follows from the plan: so a run goes on where another was killed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from threading import Lock

import msgspec
import pyarrow as pa

from lakebed.errors import (
    LakebedError,
    ObjectExistsError,
    UnknownOutcomeError,
    VersionExpiredError,
)
from lakebed.exports.asked_export import AskedExport
from lakebed.exports.export_plan import ExportPlan, ExportRequest, plan_bytes
from lakebed.exports.manifest import ExportedFile, ExportManifest, manifest_bytes, manifest_in
from lakebed.exports.target import MANIFEST, PLAN, ExportTarget
from lakebed.exports.write_slice import WriteSlice
from lakebed.model.names import Micros, TransactionNumber
from lakebed.model.table_text import table_text
from lakebed.observe import events
from lakebed.observe.usage import carried, counted_as
from lakebed.ports.clock import Clock
from lakebed.query.parquet_objects import put_bytes
from lakebed.query.run_query import QueryPlan, RunQuery
from lakebed.query.slices import SLICE_BYTES, Slice, slices_of
from lakebed.statestore.format_gate import check_entry_format
from lakebed.statestore.keep_versions import require_kept
from lakebed.statestore.log_entries.version_changes import VERSION_FORMAT
from lakebed.statestore.open_table import OpenTable
from lakebed.statestore.version_pin import VersionPin
from lakebed.tables.definition import definition_in
from lakebed.tasks.budgets import Budgets, check_budget

WAKE_SECONDS = 60.0
"""Most seconds until the pin is looked after again while slices are written."""
ID_DIGITS = 16

Progress = Callable[[int, int], None]
"""Is called with how many rows lie in files, and of how many, about."""


class Exported(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of an export.

    manifest: where it lies.
    number: of the log entry up to which the table was read.
    rows, files, bytes: of all files.
    repeated: it was finished before; this call did nothing.
    """

    table: str
    manifest: str
    number: int
    rows: int
    files: int
    bytes: int
    repeated: bool = False


class ExportTable:
    """Exports tables. Safe to kill anywhere; several processes may do the same export at once."""

    def __init__(
        self, *, query: RunQuery[pa.RecordBatch], clock: Clock, budgets: Budgets | None = None
    ) -> None:
        self._budgets = budgets
        self._query = query
        self._clock = clock

    @counted_as("export")
    def run(
        self,
        table: OpenTable,
        target: ExportTarget,
        request: ExportRequest,
        *,
        workers: int,
        slice_bytes: int = SLICE_BYTES,
        restart: bool = False,
        on_progress: Progress = lambda _done, _total: None,
    ) -> Exported:
        """Export what is asked for, or go on with that.

        restart: remove what an earlier export put into the target, and begin anew.
        workers: slices that are read at the same time.

        Raises:
            InvalidError: the request can never work, the table's budget of this month is spent, or
                the target holds anything else; nothing was written. DeniedError: the target cannot
                be written; nothing was pinned. VersionExpiredError: an export
                that was begun long ago cannot go on.
            FormatGateError: a version is named, and older releases may still work on the lake;
                nothing was written, nothing removed.
            CorruptError: a file of the table, or of the target, is damaged.
            UnavailableError, UnknownOutcomeError, DeniedError: run it again; it goes on.
        """
        check_budget(self._budgets, table, table.settings())
        asked = AskedExport(table, target, request)
        if restart:
            self._number(asked)  # what is refused removes nothing
            asked.remove(self._clock)
        plan, done = asked.found()
        pin = None
        if plan is None and done is None:
            plan, pin = self._begun(asked, slice_bytes)
            done = asked.found()[1]  # another process may have done all of it meanwhile
        if plan is None or done is not None:
            assert done is not None, "there is one or the other"
            asked.finish(plan, self._clock)
            return _exported(target, done, repeated=True)
        if pin is None:
            pin = plan.version_pin(table, self._clock)
            with _hint_of_restart():
                pin.put()
        try:
            files = self._written(asked, plan, pin, workers=workers, on_progress=on_progress)
        except LakebedError:
            done = asked.finished_by_another()
            if done is None:
                raise
            asked.finish(plan, self._clock)
            return _exported(target, done, repeated=True)
        return self._completed(asked, plan, files)

    def _completed(
        self, asked: AskedExport, plan: ExportPlan, files: Sequence[ExportedFile]
    ) -> Exported:
        """Put the manifest, which makes an export of the files, and tell of it."""
        table, target = asked.table, asked.target
        manifest = _manifest(plan, files)
        try:
            put_bytes(target.objects, MANIFEST, manifest_bytes(manifest))
        except ObjectExistsError:  # another process was faster
            manifest = manifest_in(target) or manifest
        asked.finish(plan, self._clock)
        exported = _exported(target, manifest)
        events.emit(
            events.TABLE_EXPORTED,
            table=table.name,
            rows_count=exported.rows,
            files_count=exported.files,
            number=exported.number,
        )
        return exported

    def _begun(
        self, asked: AskedExport, slice_bytes: int
    ) -> tuple[ExportPlan | None, VersionPin | None]:
        """Pin the version, and put its plan. Returns both; without the pin the plan of another
        process that was faster, None where that has finished."""
        table, target = asked.table, asked.target
        number = self._number(asked)
        target.check_writable()
        pin = VersionPin(table, f"export-{table.fresh_id()}", self._clock, number=number)
        pin.put()
        try:
            plan = self._planned(asked, pin, slice_bytes, is_past=number is not None)
            put_bytes(target.objects, PLAN, plan_bytes(plan))
        except ObjectExistsError:
            pin.drop()
            return asked.found()[0], None
        except LakebedError as error:
            finished = asked.finished_by_another() is not None
            if not finished and isinstance(error, UnknownOutcomeError):
                raise  # the plan may be there: the pin ends by itself
            pin.drop()
            if not finished:
                raise
            return None, None
        return plan, pin

    def _number(self, asked: AskedExport) -> TransactionNumber | None:
        """Refuse what can never work. Returns the number of the version that was named; None: the
        newest is asked for."""
        table, request = asked.table, asked.request
        with self._query.version(table, request.as_of) as state:
            request.selection(state.schema())
            number = state.head().number
        if request.as_of is None:
            return None
        check_entry_format(VERSION_FORMAT, table.head.formats)
        require_kept(table, number)
        return number

    def _planned(
        self, asked: AskedExport, pin: VersionPin, slice_bytes: int, *, is_past: bool
    ) -> ExportPlan:
        """Return a plan of just the version that is pinned, whatever is committed meanwhile."""
        table, request, number = asked.table, asked.request, pin.number
        with self._query.version(table, number) as state:
            query = self._query.plan(table, request.selection, as_of=number)
            definition = definition_in(state)
        assert query.condition is not None, "a user's plan has one"
        schema, done = query.schema, query.processing
        text = table_text(schema, None if done is None else done.processing)
        return ExportPlan(
            id=table.fresh_id()[:ID_DIGITS],
            request=request.digest(schema).hex(),
            table=table.id,
            name=table.name,
            number=query.number,
            table_text=text,
            at=Micros(0) if done is None else done.at,
            columns=query.condition.columns,
            conditions=request.conditions(schema),
            definition=definition,
            pin=pin.id,
            slices=self._slices(table, query, slice_bytes),
            is_past=is_past,
        )

    def _slices(self, table: OpenTable, query: QueryPlan, slice_bytes: int) -> tuple[Slice, ...]:
        found = slices_of(
            query, lambda part: self._query.sample(table, query, part), bytes_max=slice_bytes
        )
        return tuple(found) or (Slice(0, (), 0, 0),)  # an empty file shows the columns

    def _written(
        self,
        asked: AskedExport,
        plan: ExportPlan,
        pin: VersionPin,
        *,
        workers: int,
        on_progress: Progress,
    ) -> list[ExportedFile]:
        """Return what is known of the files of all slices, in key order; write those that are not
        there."""
        write = WriteSlice(
            query=self._query,
            table=asked.table,
            target=asked.target,
            plan=plan,
            selection=asked.request.selection(plan.table_text.schema()),
            readers=workers,
        )
        total = sum(part.rows for part in plan.slices)
        counted = _Counted(lambda done: on_progress(done, max(done, total)))
        with _hint_of_restart():
            found = _in_threads(
                plan.slices,
                lambda part: write.run(part, counted.add),
                threads=2 * workers,  # half of them finish files, or wait to read
                stop=write.stop,
                pin=pin,
            )
        return [file for file in found if file is not None]


@contextmanager
def _hint_of_restart() -> Iterator[None]:
    """Say what to do where the version of an export that was begun is gone."""
    try:
        yield
    except VersionExpiredError as error:
        error.hint = "begin anew with a version that is kept: --restart (restart=True)"
        raise


class _Counted:
    """Adds up rows of several threads."""

    def __init__(self, report: Callable[[int], None]) -> None:
        self._report = report
        self._rows = 0
        self._lock = Lock()

    def add(self, rows: int) -> None:
        """Report so many more."""
        with self._lock:
            self._rows += rows
            self._report(self._rows)


def _in_threads(
    slices: Sequence[Slice],
    write: Callable[[Slice], ExportedFile | None],
    *,
    threads: int,
    stop: Callable[[], None],
    pin: VersionPin,
) -> list[ExportedFile | None]:
    """Return what `write` gives of each, in their order. The first error ends all, and is raised
    when every thread has ended."""
    with ThreadPoolExecutor(threads, thread_name_prefix="lakebed-export") as pool:
        futures = [pool.submit(carried(write), part) for part in slices]
        waiting: set[Future[ExportedFile | None]] = set(futures)
        try:
            while waiting:
                done, waiting = wait(waiting, WAKE_SECONDS, FIRST_COMPLETED)
                for future in done:
                    future.result()
                pin.renew()
        except BaseException:
            stop()
            for future in waiting:
                future.cancel()
            raise
    return [future.result() for future in futures]


def _manifest(plan: ExportPlan, files: Sequence[ExportedFile]) -> ExportManifest:
    return ExportManifest(
        table=plan.table,
        name=plan.name,
        number=plan.number,
        request=plan.request,
        rows=sum(file.rows for file in files),
        columns={column.name: str(column.type) for column in plan.arrow_columns()},
        conditions=plan.conditions,
        definition=plan.definition,
        files=tuple(files),
    )


def _exported(target: ExportTarget, done: ExportManifest, *, repeated: bool = False) -> Exported:
    return Exported(
        table=done.name,
        manifest=target.address(MANIFEST),
        number=done.number,
        rows=done.rows,
        files=len(done.files),
        bytes=sum(file.bytes for file in done.files),
        repeated=repeated,
    )
