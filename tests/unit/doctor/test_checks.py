"""Each check finds the fault that it is about, and nothing where all is well."""

import re
import threading

import msgspec
import pytest

from lakebed.backends.memory.machine import MachineFigures, MemoryMachine
from lakebed.doctor.check import SECTIONS
from lakebed.doctor.checks.all_checks import ALL_CHECKS
from lakebed.errors import UnavailableError
from tests.unit.doctor.faults import PLANTED, raises
from tests.unit.doctor.world import World

BY_ID = {check.id: check for check in ALL_CHECKS}
OTHERS = {
    "lake-newer": {"release-other"},
    "may-not-read-logs": {"table-unreadable"},
}
"""What else a planted fault is, with good reason."""
CURABLE = {
    "leftovers",
    "schedules-off",
    "event-sources-off",
    "alarms-without-action",
    "alarms-muted",
    "bucket-versions-off",
    "tables-without-recovery",
    "tables-unprotected",
    "dead-letters",
}


def test_there_are_enough_checks_in_each_group_and_each_has_a_fault() -> None:
    assert len(BY_ID) == len(ALL_CHECKS) >= 40
    assert set(PLANTED) == set(BY_ID)
    assert {check.section for check in ALL_CHECKS} == set(SECTIONS)
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+)*", id_) for id_ in BY_ID)
    assert list(dict.fromkeys(check.section for check in ALL_CHECKS)) == list(SECTIONS)


@pytest.mark.parametrize("instance", [True, False])
def test_where_all_is_well_every_check_looks_and_none_finds_anything(instance: bool) -> None:
    report = World(instance=instance).examined()
    assert [one for one in report.outcomes if one.state != "healthy"] == []
    asked = [check.id for check in ALL_CHECKS if check.is_about(instance=instance)]
    assert [one.id for one in report.outcomes] == asked
    assert report.is_healthy


@pytest.mark.parametrize("id_", sorted(PLANTED))
def test_a_planted_fault_is_found(id_: str) -> None:
    world = World(instance=BY_ID[id_].of != "a directory")
    PLANTED[id_](world)
    report = world.examined()
    found = {one.id for one in report.of("found")}
    assert found - OTHERS.get(id_, set()) == {id_}
    outcome = next(one for one in report.outcomes if one.id == id_)
    assert outcome.signs
    assert outcome.cure == BY_ID[id_].cure
    assert not report.is_healthy


@pytest.mark.parametrize("id_", sorted(PLANTED))
def test_what_can_be_fixed_is_fixed_and_again_does_no_harm(id_: str) -> None:
    world = World(instance=BY_ID[id_].of != "a directory")
    PLANTED[id_](world)
    checks = world.checks()
    checks.run(world.patient())
    cures = checks.cures()
    assert bool(cures) == (id_ in CURABLE)
    for cure in cures * 2:
        cure.act()
    if cures:
        assert world.examined().is_healthy


def test_nothing_is_turned_on_in_an_instance_that_is_paused() -> None:
    world = World()
    PLANTED["instance-paused"](world)
    PLANTED["event-sources-off"](world)
    checks = world.checks()
    report = checks.run(world.patient())
    assert [one.id for one in report.of("found")] == ["instance-paused"]
    assert checks.cures() == []


def test_a_check_that_fails_could_not_look_and_harms_no_other() -> None:
    world = World()
    world.parts._asked = raises("alarms", UnavailableError("the platform is busy"))
    report = world.examined()
    assert {one.id for one in report.of("could not look")} == {
        "alarms-missing",
        "alarms-without-action",
        "alarms-muted",
        "alarms-on",
    }
    assert {one.why for one in report.of("could not look")} == {"the platform is busy"}
    assert not report.of("found")
    assert not report.is_healthy


def test_a_bug_in_a_check_is_no_answer_of_the_others() -> None:
    world = World()
    world.lake.asked = raises("marks", KeyError("oops"))
    report = world.examined()
    assert {one.id: one.why for one in report.of("could not look")} == {
        "marks-old": "a bug in Lakebed: KeyError: 'oops'",
        "work-failing": "a bug in Lakebed: KeyError: 'oops'",
    }


def test_a_check_that_hangs_is_told_in_time() -> None:
    let_go = threading.Event()

    def hangs(name: str) -> None:
        if name == "rooms":
            let_go.wait(30)

    world = World(instance=False)
    world.machine = MemoryMachine(asked=hangs)
    report = world.examined(seconds_max=0.5)
    let_go.set()
    assert {one.id: one.why for one in report.of("could not look")} == {
        "disk-nearly-full": "too slow: no answer in 0.5 s",
        "files-nearly-out": "too slow: no answer in 0.5 s",
    }
    assert report.seconds < 5


def test_tables_that_there_was_no_time_for_are_not_healthy() -> None:
    world = World()
    world.lake.unseen = 7
    outcomes = {one.id: one for one in world.examined().outcomes}
    assert outcomes["leaf-files-high"].state == "could not look"
    assert "unseen=7" in outcomes["leaf-files-high"].why
    world.lake.changed_leaf(files=350, rows=10)
    both = {one.id: one for one in world.examined().outcomes}["leaf-files-high"]
    assert (both.state, len(both.signs)) == ("found", 1)
    assert "unseen=7" in both.why


def test_a_state_fits_a_disk_of_three_times_its_size_and_the_sign_names_the_setting() -> None:
    world = World()
    PLANTED["state-over-disk"](world)
    (over,) = world.examined().of("found")
    (sign,) = over.signs
    assert sign.startswith("trips: takes 513 MiB; functions have 512 MiB: deploy with a larger ")
    for name, function in world.parts.function_of.items():
        if "snapshots" in name:  # others keep no states, and have the least
            world.parts.function_of[name] = msgspec.structs.replace(function, disk_mib=513)
    assert world.examined().is_healthy


def test_of_many_signs_the_rest_is_counted() -> None:
    world = World()
    world.machine = MemoryMachine(MachineFigures(leftovers=[f"spill {n}" for n in range(30)]))
    (left,) = [one for one in world.examined().outcomes if one.id == "leftovers"]
    assert len(left.signs) == 21
    assert left.signs[-1] == "and 10 more"
