"""Scans of a table by a cluster: the driver plans and pins, tasks read slices."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import msgspec
import pyarrow as pa

from lakebed.bootstrap.app import App
from lakebed.bootstrap.cluster.processes import (
    files_for_reading,
    location_for_tasks,
    opened_lake,
)
from lakebed.errors import InvalidError
from lakebed.model.files import FilePart
from lakebed.model.names import TransactionNumber
from lakebed.model.schema import Schema
from lakebed.model.versions import AsOf
from lakebed.ports.sorted_files import Selection
from lakebed.query.run_query import QueryPlan
from lakebed.query.scan_jobs import ScanJob, read_leaves, scan_job, where_text
from lakebed.query.slices import slices_of
from lakebed.sorted_files.format.arrow_schema import arrow_schema
from lakebed.statestore.open_table import OpenTable
from lakebed.statestore.version_pin import VersionPin

PIN_SECONDS = 3_600
"""Seconds that a frame's version is kept: the last use of a frame is not known."""

PIN_SECONDS_MAX = 30 * 86_400
SLICE_BYTES = 32 << 20
SLICE_BYTES_MIN = 1 << 10


class ScanTasks(msgspec.Struct, frozen=True):
    """The tasks that read slices, in any process on any machine."""

    location: bytes
    job: bytes

    def read(self, slice_: bytes) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a slice, in key order. Raises: as `read_leaves`."""
        job = msgspec.msgpack.decode(self.job, type=ScanJob)
        leaves = msgspec.msgpack.decode(slice_, type=tuple[tuple[FilePart, ...], ...])
        return read_leaves(files_for_reading(self.location), job, leaves)


class PlannedScan(NamedTuple):
    """A scan of one version.

    columns: of its rows, as the table has them.
    slices: in key order; none where there is nothing to read.
    """

    columns: pa.Schema
    tasks: ScanTasks
    slices: tuple[bytes, ...]


class ScanOptions(NamedTuple):
    """The options of a scan of a table.

    pin_seconds: how long the version's files stay at least; 0: nothing is pinned, and the newest
        version stays as long as the table's settings say. With `as_of` nothing is sure then: the
        files of an older version may go at any time, unless it has a tag or another pin.
    slice_bytes: of stored files that one task reads, about.
    as_of: the version; None: the newest.
    """

    pin_seconds: int = PIN_SECONDS
    slice_bytes: int = SLICE_BYTES
    as_of: AsOf | None = None

    def check(self) -> None:
        """Raise InvalidError for what no scan can be."""
        if type(self.pin_seconds) is not int or not 0 <= self.pin_seconds <= PIN_SECONDS_MAX:
            hint = f"give 0 to {PIN_SECONDS_MAX} seconds; 0 pins nothing"
            raise InvalidError("not a time for a pin", pin_seconds=self.pin_seconds, hint=hint)
        if type(self.slice_bytes) is not int or self.slice_bytes < SLICE_BYTES_MIN:
            hint = f"give a number of bytes, {SLICE_BYTES_MIN} or more"
            raise InvalidError("not a size of slices", slice_bytes=self.slice_bytes, hint=hint)


def plan_scan(
    lake: str | os.PathLike[str],
    table: str,
    ask: Callable[[Schema], Selection],
    options: ScanOptions,
) -> PlannedScan:
    """Plan a scan of one version, and pin it. ask: gives the condition, in the words of a schema.

    Raises:
        As `lakebed.connect` and `ask`. TableMissingError, with the nearest known name.
        InvalidError: an expression of Arrow, options that are not allowed, a version that lies
            ahead, an unknown tag. VersionExpiredError: it is not kept any more. FormatGateError: an
            older version is to be pinned, and older releases may still work on the lake. Nothing
            was pinned.
        UnavailableError, DeniedError: the pin cannot be committed.
    """
    options.check()
    app = opened_lake(lake)
    try:
        opened = app.catalog.find(table)
        number, schema = _version(app, opened, options.as_of)
        where_text(ask(schema), schema)  # what is refused, is refused before the pin
        if options.pin_seconds:
            id_, seconds = f"scan-{opened.fresh_id()}", options.pin_seconds
            pin = VersionPin(opened, id_, app.clock, number=number, seconds=seconds)
            pin.put()
            number = pin.number  # it keeps nothing of what is committed behind it
        plan = app.query.plan(opened, ask, as_of=number)
        job = msgspec.msgpack.encode(scan_job(opened.name, plan))
        return PlannedScan(
            _columns(plan),
            ScanTasks(location_for_tasks(app), job),
            tuple(_slices(app, plan, options.slice_bytes)),
        )
    finally:
        app.close()


def table_columns(
    lake: str | os.PathLike[str],
    table: str,
    ask: Callable[[Schema], Selection],
    options: ScanOptions,
) -> pa.Schema:
    """Return the columns that a scan would give now. Raises: as `plan_scan`."""
    app = opened_lake(lake)
    try:
        _, schema = _version(app, app.catalog.find(table), options.as_of)
        return _selected(schema, ask(schema))
    finally:
        app.close()


def _version(
    app: App, table: OpenTable, as_of: AsOf | None
) -> tuple[TransactionNumber | None, Schema]:
    """Return the number of an older version, None for the newest, and the schema."""
    if as_of is None:
        return None, table.schema
    with app.query.version(table, as_of) as state:
        return state.head().number, state.schema()


def _slices(app: App, plan: QueryPlan, bytes_max: int) -> Iterator[bytes]:
    sample_of = partial(app.files.sample, plan.schema)
    for one in slices_of(plan, sample_of, bytes_max=bytes_max):
        yield msgspec.msgpack.encode(one.leaves)


def _columns(plan: QueryPlan) -> pa.Schema:
    assert plan.condition is not None, "a user's plan has one"
    return _selected(plan.schema, plan.condition)


def _selected(schema: Schema, condition: Selection) -> pa.Schema:
    whole = arrow_schema(schema)
    if condition.columns is None:
        return whole
    return pa.schema([whole.field(name) for name in condition.columns])
