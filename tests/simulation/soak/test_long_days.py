"""A day of steady work loses nothing and nothing grows; a day of each broken twin is noticed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from lakebed.backends.memory import TupleFiles
from lakebed.garbage.collect import CollectGarbage
from lakebed.model.files import FilePart
from lakebed.model.names import TransactionNumber
from lakebed.model.schema import Schema
from lakebed.ports.sorted_files import FileWritten
from lakebed.statestore import snapshots, write_snapshot
from lakebed.statestore.open_table import OpenTable
from tests.simulation.machine import Parts
from tests.simulation.soak import long_days
from tests.simulation.soak.long_days import LongDays
from tests.simulation.twins import NeverSweeps, never_sends_again
from tests.simulation.violation import ENDS, LEAKS, ROWS, Violation

LEAVES = 3


@pytest.fixture(autouse=True)
def short_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A day of few leaves writes fewer entries than a log usually keeps."""
    monkeypatch.setattr(snapshots, "LOG_ENTRIES_MAX", 100)


def let_a_day_pass(world: LongDays) -> None:
    try:
        world.run(1.0)
        world.rest()
    finally:
        world.close()


@pytest.mark.timeout(300)
def test_a_day_loses_nothing_and_nothing_grows(tmp_path: Path) -> None:
    world = LongDays(1, tmp_path, leaves=LEAVES)
    let_a_day_pass(world)
    ticks = long_days.TICKS_A_DAY * len(world.rows)
    assert world.counts["requests"] == ticks
    assert world.compactions > 0.9 * ticks * LEAVES
    assert world.counts["looks"] == 5
    assert world.counts["snapshots"] > 3
    assert world.counts["kills"] >= 1
    assert world.counts["told unknown-outcome"] > 3


class NeverCollects(CollectGarbage):
    """Leaves what no version needs where it is."""

    def run(self, table: OpenTable) -> int:
        """Find nothing."""
        return 0


def never_empties_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Writes snapshots, and keeps every entry."""
    monkeypatch.setattr(write_snapshot, "truncate_log", lambda *_: TransactionNumber(0))


def merges_one_of_two(monkeypatch: pytest.MonkeyPatch) -> None:
    """Takes all files of a job away, and writes the rows of the first."""
    merge = TupleFiles.merge_into_file

    def first(
        files: TupleFiles,
        schema: Schema,
        parts: Sequence[FilePart],
        **given: Any,  # noqa: ANN401 - as the function it replaces
    ) -> FileWritten | None:
        return merge(files, schema, parts[:1], **given)

    monkeypatch.setattr(TupleFiles, "merge_into_file", first)


class Twin(NamedTuple):
    """A broken lake, and which checker must notice it."""

    checker: str
    parts: Parts = Parts()
    patch: Callable[[pytest.MonkeyPatch], None] = lambda _: None


TWINS = {
    "never collects": Twin(LEAKS, Parts(collect=NeverCollects)),
    "never empties logs": Twin(LEAKS, patch=never_empties_logs),
    "never sweeps": Twin(ENDS, Parts(sweep=NeverSweeps)),
    "merge of one of two": Twin(ROWS, patch=merges_one_of_two),
    "job never sent again": Twin(ENDS, patch=never_sends_again),
}


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", TWINS)
def test_a_day_of_the_twin_is_noticed(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    twin = TWINS[name]
    twin.patch(monkeypatch)
    world = LongDays(1, tmp_path, leaves=LEAVES, parts=twin.parts)
    with pytest.raises(Violation) as noticed:
        let_a_day_pass(world)
    assert noticed.value.checker == twin.checker
