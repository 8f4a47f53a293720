"""Versions are what copies say that were made at that moment, by number, time and tag, while the
table is ingested, merged, split, cleared, collected, changed, and its log is emptied."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import datetime
from itertools import pairwise
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest

import lakebed
from lakebed.backends.memory.clock import VirtualClock
from lakebed.bootstrap.local import open_local
from lakebed.errors import VersionExpiredError
from lakebed.lake import Lake
from lakebed.model.versions import AsOf, time_of
from lakebed.statestore.write_snapshot import truncate_log

SCHEMA = lakebed.schema_of(row_keys={"id": "int64"}, values={"n": "int64?"})
SETTINGS = {
    "garbage_seconds_min": 3_600,
    "leaf_rows_max": 40,
    "job_files_max": 3,
    "size_ratio": 1,
}
STEPS = 30


class Copy(msgspec.Struct, frozen=True):
    """A version as it was: the names of its columns, and rows in key order."""

    names: list[str]
    rows: list[dict[str, object]]


class Life:
    """A table, and copies of all of its versions that had new rows or fields."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.rng = random.Random(seed)
        self.clock = VirtualClock()
        self._folder = folder
        self.lake = self._opened()
        self.lake.create_table("t", SCHEMA, settings=SETTINGS)
        self.copies: dict[int, Copy] = {}
        self.times: dict[int, datetime] = {}
        self.tags: dict[str, int] = {}
        self.read = self.expired = 0
        self.keep_copy()

    def _opened(self) -> Lake:
        return Lake(open_local(self._folder / "lake", clock=self.clock))

    @property
    def table(self) -> lakebed.Table:
        return self.lake["t"]

    def keep_copy(self) -> None:
        found = self.table.to_arrow()
        number = self.lake.status("t")[0].number
        self.copies[number] = Copy(found.column_names, found.to_pylist())
        self.times[number] = time_of(self.clock.now())

    # what happens

    def ingest(self) -> None:
        keys = [self.rng.randrange(200) for _ in range(self.rng.randrange(1, 30))]
        names = self.table.arrow_schema.names
        columns = {name: pa.array(keys, pa.int64()) for name in names}
        self.table.ingest(pa.table(columns), extra_columns="drop")

    def compact(self) -> None:
        self.lake.run() if self.rng.random() < 0.5 else self.table.compact()

    def collect(self) -> None:
        self.clock.advance(2 * 3_600)
        self.lake.run()

    def clear(self) -> None:
        self.table.clear(split_points=[self.rng.randrange(200)])

    def rename(self) -> None:
        before = self.table.schema.values[0].name
        self.table.rename_field(before, f"n{self.rng.getrandbits(32)}")

    def tag(self) -> None:
        name, number = f"tag-{self.rng.getrandbits(48)}", self.rng.choice(sorted(self.copies))
        horizon = self.lake.status("t")[0].horizon
        try:
            self.tags[name] = self.table.tag(name, as_of=number).number
        except VersionExpiredError:
            assert horizon is not None
            assert number < horizon
            assert number not in self.tags.values()

    def untag(self) -> None:
        if self.tags:
            name = self.rng.choice(sorted(self.tags))
            del self.tags[name]
            self.table.drop_tag(name)

    def empty_log(self) -> None:
        self.table.write_snapshot()
        self.table.change_settings(job_files_max=self.rng.choice((3, 4)))
        self.table.write_snapshot()
        log = self.table._app.logs.open(self.table._opened.id)
        truncate_log(self.table._opened, self.table._snapshots(), log)

    def reopen(self) -> None:
        self.lake.close()
        self.lake = self._opened()

    def step(self) -> None:
        steps: dict[Callable[[], None], int] = {
            self.ingest: 6,
            self.compact: 4,
            self.collect: 3,
            self.clear: 1,
            self.rename: 1,
            self.tag: 4,
            self.untag: 1,
            self.empty_log: 2,
            self.reopen: 1,
        }
        self.clock.advance(self.rng.choice((0, 1, 90)))
        (step,) = self.rng.choices(list(steps), list(steps.values()))
        step()
        self.clock.advance(self.rng.choice((0, 1, 90)))

    # what is true

    def check(self, number: int, as_of: AsOf) -> None:
        copy = self.copies[number]
        try:
            found = self.table.to_arrow(as_of=as_of)
            count = self.table.count(as_of=as_of)
            unordered = [
                self.table.scan(as_of=as_of).read_all(),
                self.table.dataset(as_of=as_of).to_table(),
                self.lake.sql("from t", as_of=as_of).read_all(),
                self.table.sql("from this", as_of={"this": as_of}).read_all(),
            ]
        except VersionExpiredError:
            horizon = self.lake.status("t")[0].horizon
            assert horizon is not None
            assert number < horizon, "it is above the horizon"
            assert number not in self.tags.values(), "it has a tag"
            self.expired += 1
            return
        assert found.column_names == copy.names
        assert found.to_pylist() == copy.rows
        assert count == len(copy.rows)
        for rows in unordered:
            assert rows.column_names == copy.names
            assert sorted(map(repr, rows.to_pylist())) == sorted(map(repr, copy.rows))
        self.read += 1


@pytest.mark.parametrize("seed", range(5))
def test_versions_are_what_copies_say(seed: int, tmp_path: Path) -> None:
    life = Life(tmp_path, seed)
    for _ in range(STEPS):
        life.step()
        life.keep_copy()
        number = life.rng.choice(sorted(life.copies))
        life.check(number, number)
        if life.tags:
            name = life.rng.choice(sorted(life.tags))
            if life.tags[name] in life.copies:
                life.check(life.tags[name], name)
    for name, number in life.tags.items():
        life.check(number, name)
    horizon = life.lake.status("t")[0].horizon or 0
    numbers = sorted(life.copies)
    for number, later in pairwise(numbers):
        if number >= horizon and life.times[number] < life.times[later]:
            life.check(number, life.times[number])
    assert life.read > STEPS // 2
    report = life.lake.fsck("t", deep=True)
    assert not [one for one in report.findings if one.severity == "damage"]
    life.lake.close()
