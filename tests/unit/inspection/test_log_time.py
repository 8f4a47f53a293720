"""A log time that is ahead of the clock: fsck finds it, and a repair sets it back (H35)."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pyarrow as pa
import pytest

import lakebed
from lakebed.backends.memory import VirtualClock
from lakebed.bootstrap.local import open_local
from lakebed.lake import Lake
from lakebed.model.names import MICROS_PER_SECOND, Micros
from lakebed.statestore.log_entries.table_changes import PutPin
from lakebed.statestore.open_table import start_of

DAY = 86_400
SCHEMA = lakebed.schema_of(row_keys={"id": "string"}, sort_keys={"at": "timestamp[us, UTC]"})

Machine = Callable[[int], Lake]


@pytest.fixture
def world() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def machine(tmp_path: Path, world: VirtualClock) -> Iterator[Machine]:
    """The lake, as a machine has it whose clock is so many seconds ahead."""
    with ExitStack() as opened:

        def at(ahead_seconds: int) -> Lake:
            clock = world.machine(ahead_seconds * MICROS_PER_SECOND)
            return Lake(opened.enter_context(closing(open_local(tmp_path / "lake", clock=clock))))

        yield at


def row(world: VirtualClock, key: str) -> pa.Table:
    at = pa.array([world.now()], pa.timestamp("us", "UTC"))
    return pa.table({"id": [key], "at": at})


def given_log_time_ahead(machine: Machine, world: VirtualClock) -> None:
    """A machine that was 200 days ahead for so long that it was believed."""
    month = lakebed.Processing(age_off=lakebed.AgeOff("at", seconds=30 * DAY))
    table = machine(0).create_table("t", SCHEMA, processing=month)
    table.ingest(row(world, "a"), job="a")
    wrong = machine(200 * DAY).table("t")
    for limit in (100, 200):
        wrong.change_settings(leaf_files_max=limit)
        world.advance(700)
    wrong.change_settings(leaf_files_max=1_000)


def test_a_log_time_that_is_ahead_is_found_and_set_back(
    world: VirtualClock, machine: Machine
) -> None:
    given_log_time_ahead(machine, world)
    here = machine(0)
    report = here.fsck()
    assert [(f.code, f.severity, f.facts["days"]) for f in report.findings] == [
        ("log-time-ahead", "notice", 200)
    ]
    (done,) = here.repair(here.plan_repair(report))
    assert (done.step.action, done.count, done.problem) == ("set-time-back", 1, "")
    assert here.fsck(deep=True).findings == ()
    assert here.table("t")._opened.head.log_time() == world.now()
    (again,) = here.repair(here.plan_repair(report))
    assert again.count == 0, "there is nothing left to mend"


def test_a_lake_whose_clocks_are_right_has_no_such_finding(
    world: VirtualClock, machine: Machine
) -> None:
    machine(0).create_table("t", SCHEMA)
    machine(DAY - 60).table("t").ingest(row(world, "a"))
    assert machine(0).fsck().findings == ()


def test_after_a_repair_things_age_again_and_nothing_is_forgotten_too_soon(
    world: VirtualClock, machine: Machine
) -> None:
    given_log_time_ahead(machine, world)
    here = machine(0)
    table = here.table("t")
    table.ingest(row(world, "d"))
    table.compact()
    assert len(list(_garbage(table))) == 2
    here.repair(here.plan_repair(here.fsck()))
    here.run()
    assert len(list(_garbage(table))) == 2, "it is garbage since minutes"
    assert table.ingest(row(world, "other"), job="late").number
    world.advance(2 * 3_600)
    here.run()
    assert list(_garbage(table)) == []
    assert table.query().read_all().num_rows == 3


def test_a_reader_keeps_its_files_over_a_repair(world: VirtualClock, machine: Machine) -> None:
    given_log_time_ahead(machine, world)
    here = machine(0)
    opened = here.table("t")._opened
    with opened.head.reading() as state:
        start = start_of(state)
    until = Micros(opened.head.log_time() + 6 * 3_600 * MICROS_PER_SECOND)
    opened.head.commit(opened.own(start, PutPin("reader", until)))
    here.repair(here.plan_repair(here.fsck()))
    with opened.head.reading() as state:
        (pin,) = state.pins()
    assert pin.until == world.now() + 6 * 3_600 * MICROS_PER_SECOND


def test_what_a_change_of_processing_took_for_gone_is_not_gone(
    world: VirtualClock, machine: Machine
) -> None:
    given_log_time_ahead(machine, world)
    here = machine(0)
    table = here.table("t")
    longer = lakebed.Processing(age_off=lakebed.AgeOff("at", seconds=60 * DAY))
    table.change_processing(longer)
    assert table.query().read_all().num_rows == 0, "all before the wrong time is gone"
    here.repair(here.plan_repair(here.fsck()))
    assert table.query().read_all().num_rows == 1


def _garbage(table: lakebed.Table) -> Iterator[object]:
    with table._opened.head.reading() as state:
        yield from state.garbage()
