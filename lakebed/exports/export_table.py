"""Export: rows of one version of a table become files of Parquet and a manifest, in key order.

First a pin, then the plan, then each slice's file and note, then the manifest. Each is put if
absent, under a name that follows from the plan: so a run goes on where another was killed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from threading import Lock
from typing import NamedTuple

import msgspec
import pyarrow as pa

from lakebed.errors import (
    CorruptError,
    InvalidError,
    LakebedError,
    ObjectExistsError,
    VersionExpiredError,
)
from lakebed.exports.export_plan import ExportPlan, ExportRequest, plan_bytes, plan_in
from lakebed.exports.manifest import ExportedFile, Manifest, manifest_bytes, manifest_in
from lakebed.exports.target import MANIFEST, PLAN, PROGRESS, Target, is_rows_path
from lakebed.exports.write_slice import WriteSlice
from lakebed.model.names import Micros
from lakebed.model.table_text import table_text
from lakebed.observe import events
from lakebed.ports.clock import Clock
from lakebed.query.parquet_objects import put_bytes
from lakebed.query.run_query import QueryPlan, RunQuery
from lakebed.query.slices import SLICE_BYTES, Slice, slices_of
from lakebed.statestore.open_table import OpenTable
from lakebed.statestore.version_pin import VersionPin
from lakebed.tables.definition import definition_of

WAKE_SECONDS = 60.0
"""How often it is seen to the pin while slices are written."""
ID_DIGITS = 16
DELETED_AT_ONCE = 1_000

Progress = Callable[[int, int], None]
"""Is called with how many rows lie in files, and of how many, about."""


class Exported(msgspec.Struct, frozen=True, kw_only=True):
    """What became of an export.

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


class _Work(NamedTuple):
    """An export that goes on."""

    table: OpenTable
    target: Target
    plan: ExportPlan
    request: ExportRequest
    pin: VersionPin


class ExportTable:
    """Exports tables. Safe to kill anywhere; several processes may do the same export at once."""

    def __init__(self, *, query: RunQuery[pa.RecordBatch], clock: Clock) -> None:
        self._query = query
        self._clock = clock

    def run(
        self,
        table: OpenTable,
        target: Target,
        request: ExportRequest,
        *,
        workers: int,
        slice_bytes: int = SLICE_BYTES,
        restart: bool = False,
        on_progress: Progress = lambda _done, _total: None,
    ) -> Exported:
        """Export what is asked for, or go on with that. restart: remove what an earlier export put
        into the target, and begin anew. workers: threads.

        Raises:
            InvalidError: the request can never work, or the target holds anything else; nothing was
                written. VersionExpiredError: an export that was begun long ago cannot go on.
            CorruptError: a file of the table, or of the target, is damaged.
            UnavailableError, UnknownOutcomeError, DeniedError: run it again; it goes on.
        """
        with table.head.reading() as state:
            digest = request.digest(state.schema()).hex()
        if restart:
            _remove_export(table, target, self._clock)
        plan = plan_in(target)
        done = manifest_in(target)  # behind the plan: who finishes puts it, then deletes the plan
        if done is not None:
            _refuse_other(target, done.table, done.request, table, digest)
            _finish(table, target, plan, self._clock)
            return _exported(target, done, repeated=True)
        if plan is None:
            plan, pin = self._begun(table, target, request, digest, slice_bytes)
        else:
            pin = self._joined(table, target, plan, digest)
        files = self._written(_Work(table, target, plan, request, pin), workers, on_progress)
        manifest = _manifest(plan, files)
        try:
            put_bytes(target.objects, MANIFEST, manifest_bytes(manifest))
        except ObjectExistsError:  # another process finished this export
            manifest = manifest_in(target) or manifest
        _finish(table, target, plan, self._clock)
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
        self,
        table: OpenTable,
        target: Target,
        request: ExportRequest,
        digest: str,
        slice_bytes: int,
    ) -> tuple[ExportPlan, VersionPin]:
        """Pin the newest version, and put its plan. Returns both, or the plan of another process
        that was faster."""
        _refuse_what_is_there(target)
        target.objects.create(PLAN).abort()  # can it be written at all?
        id_ = f"export-{table.fresh_id()}"
        pin = VersionPin(table, id_, self._clock)
        pin.put()
        try:
            plan = self._planned(table, request, digest, id_, slice_bytes)
            put_bytes(target.objects, PLAN, plan_bytes(plan))
            return plan, pin
        except ObjectExistsError:
            pin.drop()
            found = plan_in(target)
            if found is None:
                raise
            return found, self._joined(table, target, found, digest)
        except LakebedError:
            pin.drop()
            raise

    def _joined(
        self, table: OpenTable, target: Target, plan: ExportPlan, digest: str
    ) -> VersionPin:
        """Return the pin of an export that was begun, with a new end. Raises: InvalidError: it is
        another one."""
        _refuse_other(target, plan.table, plan.request, table, digest)
        pin = VersionPin(table, plan.pin, self._clock)
        pin.put()
        return pin

    def _planned(
        self, table: OpenTable, request: ExportRequest, digest: str, pin: str, slice_bytes: int
    ) -> ExportPlan:
        with table.head.reading():  # plan and definition are of one version
            query = self._query.plan(table, request.selection)
            definition = definition_of(table)
        schema, done = query.schema, query.processing
        text = table_text(schema, None if done is None else done.processing)
        return ExportPlan(
            id=table.fresh_id()[:ID_DIGITS],
            request=digest,
            table=table.id,
            name=table.name,
            number=query.number,
            table_text=text,
            at=Micros(0) if done is None else done.at,
            columns=None if request.columns is None else tuple(request.columns),
            conditions=request.conditions(schema),
            definition=definition,
            pin=pin,
            slices=self._slices(table, query, slice_bytes),
        )

    def _slices(self, table: OpenTable, query: QueryPlan, slice_bytes: int) -> tuple[Slice, ...]:
        found = slices_of(
            query, lambda part: self._query.sample(table, query, part), bytes_max=slice_bytes
        )
        return tuple(found) or (Slice(0, (), 0, 0),)  # an empty file shows the columns

    def _written(self, work: _Work, workers: int, on_progress: Progress) -> list[ExportedFile]:
        """Return what is known of the files of all slices, in key order; write those that are not
        there."""
        plan = work.plan
        write = WriteSlice(
            query=self._query,
            table=work.table,
            target=work.target,
            plan=plan,
            selection=work.request.selection(plan.table_text.schema()),
        )
        total = sum(part.rows for part in plan.slices)
        counted = _Counted(lambda done: on_progress(done, max(done, total)))
        try:
            found = _in_threads(
                plan.slices,
                lambda part: write.run(part, counted.add),
                workers=workers,
                stop=write.stop,
                pin=work.pin,
            )
        except VersionExpiredError as error:
            error.hint = "begin anew with the newest version: --restart (restart=True)"
            raise
        return [file for file in found if file is not None]


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
    workers: int,
    stop: Callable[[], None],
    pin: VersionPin,
) -> list[ExportedFile | None]:
    """Return what `write` gives of each, in their order. The first error ends all, and is raised
    when every thread has ended."""
    with ThreadPoolExecutor(workers, thread_name_prefix="lakebed-export") as threads:
        futures = [threads.submit(write, part) for part in slices]
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


def _manifest(plan: ExportPlan, files: Sequence[ExportedFile]) -> Manifest:
    return Manifest(
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


def _exported(target: Target, done: Manifest, *, repeated: bool = False) -> Exported:
    return Exported(
        table=done.name,
        manifest=target.address(MANIFEST),
        number=done.number,
        rows=done.rows,
        files=len(done.files),
        bytes=sum(file.bytes for file in done.files),
        repeated=repeated,
    )


def _refuse_other(
    target: Target, table_id: str, request: str, table: OpenTable, digest: str
) -> None:
    """Refuse a request that is not the one whose export lies in the target. Raises:
    InvalidError."""
    if (table_id, request) != (table.id, digest):
        what = "of another table" if table_id != table.id else "of other rows or columns"
        hint = "name another target, or remove that export: --restart (restart=True)"
        raise InvalidError(f"the target holds an export {what}", target=target.location, hint=hint)


def _refuse_what_is_there(target: Target) -> None:
    """Refuse a target that holds anything. Raises: InvalidError."""
    found = next(target.objects.list(""), None)
    if found is not None:
        hint = "name an empty folder, or one that is not there yet"
        raise InvalidError("the target is not empty", path=target.address(found), hint=hint)


def _finish(table: OpenTable, target: Target, plan: ExportPlan | None, clock: Clock) -> None:
    """Let the version be collected, and remove what only an unfinished export needs, the plan last:
    a run that is killed here is finished by the next one."""
    if plan is not None:
        VersionPin(table, plan.pin, clock).drop()
        _delete(target, [path for path in target.objects.list(f"{PROGRESS}/") if path != PLAN])
        _delete(target, [PLAN])
    target.tidy()


def _remove_export(table: OpenTable, target: Target, clock: Clock) -> None:
    """Remove all that exports put into the target, the manifest first and the plan last: a run that
    is killed here finds an unfinished export."""
    with suppress(CorruptError):
        plan = plan_in(target)
        if plan is not None and plan.table == table.id:
            VersionPin(table, plan.pin, clock).drop()
    _delete(target, [MANIFEST])
    ours = [path for path in target.objects.list("") if is_rows_path(path)]
    notes = [path for path in target.objects.list(f"{PROGRESS}/") if path != PLAN]
    _delete(target, [*ours, *notes])
    _delete(target, [PLAN])
    target.tidy()


def _delete(target: Target, paths: Sequence[str]) -> None:
    for at in range(0, len(paths), DELETED_AT_ONCE):
        target.objects.delete(paths[at : at + DELETED_AT_ONCE])
