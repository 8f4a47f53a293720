"""Rows age by the smaller of log time and the clock of the machine that looks (H36)."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pyarrow as pa
import pytest

import lakebed
from lakebed.backends.memory import VirtualClock
from lakebed.bootstrap.local import open_local
from lakebed.lake import Lake
from lakebed.model.names import MICROS_PER_SECOND
from tests.unit.tables.lakes import ids

DAY = 86_400
SCHEMA = lakebed.schema_of(row_keys={"id": "string"}, sort_keys={"at": "timestamp[us, UTC]"})
MONTH = lakebed.Processing(age_off=lakebed.AgeOff("at", seconds=30 * DAY))

Machine = Callable[[int], lakebed.Table]


@pytest.fixture
def world() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def machine(tmp_path: Path, world: VirtualClock) -> Iterator[Machine]:
    """The table `t`, as a machine sees it whose clock is so many seconds ahead."""
    with ExitStack() as opened:

        def at(ahead_seconds: int) -> lakebed.Table:
            clock = world.machine(ahead_seconds * MICROS_PER_SECOND)
            app = opened.enter_context(closing(open_local(tmp_path / "lake", clock=clock)))
            lake = Lake(app)
            return lake.table("t") if "t" in lake.tables() else created(lake)

        yield at


def created(lake: Lake) -> lakebed.Table:
    return lake.create_table("t", SCHEMA, processing=MONTH)


def row(world: VirtualClock, key: str, age_seconds: int = 0) -> pa.Table:
    at = pa.array([world.now() - age_seconds * MICROS_PER_SECOND], pa.timestamp("us", "UTC"))
    return pa.table({"id": [key], "at": at})


def test_a_commit_by_a_clock_that_is_ahead_takes_no_rows_of_today_away(
    world: VirtualClock, machine: Machine
) -> None:
    here, wrong = machine(0), machine(200 * DAY)
    here.ingest(row(world, "before"))
    wrong.ingest(row(world, "by the wrong one", age_seconds=-199 * DAY))
    done = here.ingest(row(world, "after"))
    assert (done.read, done.filtered) == (1, 0)
    assert {"before", "after"} <= set(ids(here))
    here.compact()
    assert {"before", "after"} <= set(ids(here))


def test_work_by_a_clock_that_is_ahead_takes_no_rows_of_today_away(
    world: VirtualClock, machine: Machine
) -> None:
    here, wrong = machine(0), machine(200 * DAY)
    here.ingest(row(world, "one"))
    done = wrong.ingest(row(world, "two"))
    assert (done.read, done.filtered) == (1, 0)
    wrong.compact()
    assert ids(here) == ["one", "two"]


def test_a_clock_that_is_behind_shows_rows_too_long_and_takes_none_away(
    world: VirtualClock, machine: Machine
) -> None:
    here, behind = machine(0), machine(-20 * DAY)
    here.ingest(row(world, "young"))
    here.ingest(row(world, "old", age_seconds=29 * DAY))
    world.advance(2 * DAY)
    assert ids(here) == ["young"]
    assert ids(behind) == ["old", "young"]
    behind.compact()
    assert ids(here) == ["young"]


@pytest.mark.parametrize("asked", [{"where": "id <> 'two'"}, {"keys": ["one"]}])
def test_a_delete_by_a_clock_that_is_ahead_finds_rows_of_today(
    world: VirtualClock, machine: Machine, asked: dict[str, object]
) -> None:
    here, wrong = machine(0), machine(200 * DAY)
    here.ingest(pa.concat_tables([row(world, "one"), row(world, "two")]))
    assert wrong.delete(**asked).rows == 1
    assert ids(here) == ["two"]


def test_an_export_by_a_clock_that_is_ahead_has_rows_of_today(
    world: VirtualClock, machine: Machine, tmp_path: Path
) -> None:
    here, wrong = machine(0), machine(200 * DAY)
    here.ingest(row(world, "one"))
    assert wrong.export(tmp_path / "copy").rows == 1
