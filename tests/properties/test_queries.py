"""Queries give what a plain filter over all rows gives, whatever happens to the table meanwhile."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lakebed.errors import InvalidError, VersionExpiredError
from lakebed.ingest.sources import ArrowSource
from lakebed.lake import Lake, connect
from lakebed.model.schema import Schema
from lakebed.table import Table
from tests.properties.tables import (
    Row,
    arrow,
    bag,
    field_changes,
    has_key,
    in_ranges,
    kept_rows,
    keys,
    predicates,
    ranges,
    rows,
    schemas,
    sort_key,
    split_points,
    with_changes,
)

SETTINGS = {
    "garbage_seconds_min": 0,
    "pending_seconds_max": 0,
    "leaf_rows_max": 12,
    "job_files_max": 3,
    "size_ratio": 1,
}


SHARED_MEMORY = Path("/dev/shm")
IN_MEMORY = SHARED_MEMORY if SHARED_MEMORY.is_dir() else None
"""Where syncing costs nothing, on systems that have it: these tests are not about power loss."""


class World:
    """A table, the rows that were put in, and readers that were opened on the way."""

    def __init__(self, lake: Lake, table: Table) -> None:
        self.lake, self.table = lake, table
        self.app, self.opened = lake._app, table._opened
        self.rows: list[Row] = []
        self.readers: list[tuple[pa.RecordBatchReader, list[str]]] = []
        self.collected = 0

    @property
    def schema(self) -> Schema:
        return self.table.schema

    def act(self, action: str, data: st.DataObject) -> None:
        match action:
            case "ingest":
                some = data.draw(rows(self.schema))
                self.table.ingest(arrow(self.schema, some))
                self.rows += some
            case "ingest late":  # it began before the fields were changed
                before, some = self.schema, data.draw(rows(self.schema))
                source = ArrowSource(arrow(before, some), before)
                changes = self.change(data)
                self.app.ingest.run(self.opened, source)
                self.rows += with_changes(some, changes)
            case "change":
                self.change(data)
            case "split":
                self.app.split_leaves.run(self.opened)
            case "claim":
                self.app.create_jobs.run(self.opened, everything=data.draw(st.booleans()))
            case "merge":
                with self.opened.head.reading() as state:
                    jobs = state.jobs()
                for job in jobs[:2]:
                    self.app.run_job.run(self.opened, job.id)
            case "collect":
                self.collected += self.app.collect.run(self.opened)
            case "read":
                self.readers.append((self.table.query(), bag(self.rows)))

    def change(self, data: st.DataObject) -> dict[str, Any]:
        changes = data.draw(field_changes(self.schema))
        if changes:
            self.table.change_fields(**changes)
            self.rows = with_changes(self.rows, changes)
        return changes

    def check_readers(self) -> None:
        for reader, wanted in self.readers:
            try:
                found = reader.read_all().to_pylist()
            except VersionExpiredError:
                assert self.collected, "nothing was collected, so nothing expired"
            else:
                assert bag(found) == wanted


ACTIONS = (
    *("ingest", "ingest", "ingest late", "change"),
    *("split", "claim", "merge", "merge", "collect", "read"),
)


@contextmanager
def world(data: st.DataObject) -> Iterator[World]:
    schema = data.draw(schemas())
    points = data.draw(split_points(schema))
    shared = data.draw(st.sampled_from([0, 5, 5_000]))
    with (
        tempfile.TemporaryDirectory(dir=IN_MEMORY) as folder,
        connect(Path(folder, "lake")) as lake,
    ):
        try:
            table = lake.create_table(
                "t",
                schema,
                split_points=points,
                settings=SETTINGS | {"shared_file_rows_max": shared},
            )
        except InvalidError:  # the least key of all cannot be a split point
            table = lake.create_table(
                "t",
                schema,
                split_points=points[1:],
                settings=SETTINGS | {"shared_file_rows_max": shared},
            )
        yield World(lake, table)


def check_a_query(it: World, data: st.DataObject) -> None:
    schema = it.schema
    condition: dict[str, Any] = {}
    wanted = it.rows
    kind = data.draw(st.sampled_from(["all", "ranges", "keys", "both"]))
    boxes = data.draw(st.lists(ranges(schema), min_size=1, max_size=3))
    exact = data.draw(st.lists(keys(schema), min_size=1, max_size=3))
    if kind in {"ranges", "both"}:
        condition["ranges"] = boxes[0] if len(boxes) == 1 else boxes
    if kind in {"keys", "both"}:
        condition["keys"] = exact
    if condition:
        wanted = [
            row
            for row in it.rows
            if (kind != "keys" and any(in_ranges(row, box) for box in boxes))
            or (kind != "ranges" and any(has_key(schema, row, key) for key in exact))
        ]
    where = data.draw(st.none() | predicates(schema, it.rows))
    if where is not None:
        condition["where"] = where
        wanted = kept_rows(schema, wanted, where)
    limit = data.draw(st.none() | st.integers(0, len(it.rows) + 1))
    names = [f.name for f in schema.fields]
    columns = data.draw(st.none() | st.lists(st.sampled_from(names), unique=True, min_size=1))
    found = it.table.query(**condition, limit=limit).read_all().to_pylist()
    found_keys = [sort_key(schema, row) for row in found]
    ordered = sorted(sort_key(schema, row) for row in wanted)
    assert found_keys == ordered[:limit]
    if limit is None or limit >= len(wanted):
        assert bag(found) == bag(wanted)
    else:
        rest = bag(wanted)
        for row in bag(found):
            rest.remove(row)
    if columns is not None:
        fewer = it.table.query(**condition, columns=columns, limit=limit).read_all()
        assert fewer.column_names == columns
        if limit is None:
            assert bag(fewer.to_pylist()) == bag([{c: r[c] for c in columns} for r in wanted])


def check_a_life(data: st.DataObject) -> None:
    with world(data) as it:
        for action in data.draw(st.lists(st.sampled_from(ACTIONS), min_size=2, max_size=10)):
            it.act(action, data)
        for _ in range(3):
            check_a_query(it, data)
        it.check_readers()
        it.lake.run()
        check_a_query(it, data)
        assert bag(it.table.query().read_all().to_pylist()) == bag(it.rows)
        report = it.app.inspection.fsck().run(deep=True)
        assert not [f for f in report.findings if f.severity == "damage"], report.findings


QUICK = settings(max_examples=30, suppress_health_check=list(HealthCheck))
LONG = settings(QUICK, max_examples=1_000)


@QUICK
@given(st.data())
def test_a_query_gives_what_a_plain_filter_gives(data: st.DataObject) -> None:
    check_a_life(data)


@pytest.mark.slow
@pytest.mark.timeout(1_800)
@LONG
@given(st.data())
def test_a_query_gives_what_a_plain_filter_gives_a_thousand_times(data: st.DataObject) -> None:
    check_a_life(data)
