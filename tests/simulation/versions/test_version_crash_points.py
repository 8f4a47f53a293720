"""What keeps versions is killed before and after each of its effects, and loses each answer.

Afterwards another process does the same again, while the table is collected and its log is emptied;
then all checkers look.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import pytest

from lakebed.backends.faulty import CALM, Crash, CrashPlan
from lakebed.backends.faulty.crash_plan import Moment
from lakebed.errors import LakebedError
from lakebed.model.names import TransactionNumber
from lakebed.query.follow_changes import Following
from lakebed.statestore.version_pin import VersionPin
from lakebed.tables.versions import drop_tag, put_tag
from tests.simulation import actors
from tests.simulation.actors import send
from tests.simulation.ending import keep_house
from tests.simulation.machine import Machine
from tests.simulation.test_crash_points import SETTINGS, LosesAnswer, main_table
from tests.simulation.versions.versioned_world import VersionedWorld

SEED = 3
EFFECTS_MAX = 40
KEPT_AT = TransactionNumber(4)
"""A version between the first files and the jobs that merge them."""
Step = Callable[[VersionedWorld, Machine], None]


class CalmWorld(VersionedWorld):
    """A world in which nothing happens but what a test does."""

    def some_settings(self) -> dict[str, object]:
        """Return settings that do not depend on chance."""
        return dict(SETTINGS)


def tag(_: VersionedWorld, machine: Machine) -> None:
    put_tag(main_table(machine), "later", KEPT_AT)


def untag(_: VersionedWorld, machine: Machine) -> None:
    drop_tag(main_table(machine), "then")


def pin(_: VersionedWorld, machine: Machine) -> None:
    table = main_table(machine)
    VersionPin(table, "reader", machine.clock, number=KEPT_AT, seconds=36_000).put()


def collect(_: VersionedWorld, machine: Machine) -> None:
    machine.collect.run(main_table(machine))


def empty_log(world: VersionedWorld, machine: Machine) -> None:
    actors.write_snapshot(machine, main_table(machine))


def follow(_: VersionedWorld, machine: Machine) -> None:
    table = main_table(machine)
    if not machine.follow.is_there(table, "mirror"):
        machine.follow.begin(table, "mirror", KEPT_AT)
    following = Following(machine.follow, table, "mirror")
    for change in following:
        following.acknowledge(change.upto)


def given_garbage(world: VersionedWorld, machine: Machine) -> None:
    """Merge files away, and what they became: a tag keeps the first, and nothing the others."""
    table = main_table(machine)
    for _ in range(6):
        send(world, machine, table, world.ask(table.id, rows_max=9))
    put_tag(table, "then", KEPT_AT)
    for _ in range(4):
        machine.create_jobs.run(table, everything=True)
        machine.worker.run(jobs_max=10)
        machine.committer.run(batches_max=10)
    world.clock.advance(4_000)


def given_snapshots(world: VersionedWorld, machine: Machine) -> None:
    given_garbage(world, machine)
    for _ in range(2):
        send(world, machine, main_table(machine), world.ask(main_table(machine).id, rows_max=9))
        with main_table(machine).head.reading() as state:
            machine.snapshots(main_table(machine).id).write(state)


CASES: Mapping[str, tuple[Step, Step]] = {
    "tag": (tag, given_garbage),
    "untag": (untag, given_garbage),
    "pin": (pin, given_garbage),
    "collection": (collect, given_garbage),
    "log emptied": (empty_log, given_snapshots),
    "follower": (follow, given_garbage),
}
"""What is killed, and after what."""


def worlds(
    name: str, scratch: Path, crashes: Iterator[CrashPlan]
) -> Iterator[tuple[VersionedWorld, Machine]]:
    """Yield one world after another in which a machine with the next plan is about to begin."""
    step, before = CASES[name]
    for plan in crashes:
        world = CalmWorld(SEED, scratch)
        world.weather.rates = CALM
        before(world, world.calm_machine(informed=True))
        machine = world.calm_machine(informed=True, crashes=plan)
        world.machines = [machine]
        try:
            yield world, machine
            world.machines = [m for m in world.machines if not m.crashes.dead]
            take_over(world, step)
        finally:
            world.close()


def take_over(world: VersionedWorld, step: Step) -> None:
    """A new process, without a cache, does the same again; then the world ends and is looked at."""
    machine = world.calm_machine()
    world.machines.append(machine)
    with suppress(LakebedError):  # a tag that is there, or gone
        step(world, machine)
    collect(world, machine)
    for _ in range(2):
        actors.change_settings(world, machine)
        empty_log(world, machine)
        keep_house(world, machine, main_table(machine))
    world.end()
    world.check()


def effects_of(name: str, scratch: Path) -> list[str]:
    effects: list[str] = []
    for world, machine in worlds(name, scratch, iter([CrashPlan()])):
        CASES[name][0](world, machine)
        effects = list(machine.crashes.effects)
    return effects


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("name", CASES)
def test_what_keeps_versions_may_be_killed_at_every_effect(
    name: str, moment: Moment, tmp_path: Path
) -> None:
    effects = effects_of(name, tmp_path)
    assert 1 <= len(effects) <= EFFECTS_MAX, effects
    plans = (CrashPlan(at, moment) for at in range(1, len(effects) + 1))
    for world, machine in worlds(name, tmp_path, plans):
        with pytest.raises(Crash):
            CASES[name][0](world, machine)


@pytest.mark.parametrize("name", CASES)
def test_what_keeps_versions_may_lose_the_answer_to_every_effect(name: str, tmp_path: Path) -> None:
    effects = effects_of(name, tmp_path)
    plans = (LosesAnswer(at) for at in range(1, len(effects) + 1))
    for world, machine in worlds(name, tmp_path, plans):
        world.weather.choose = machine.crashes.choose  # type: ignore[method-assign]  # only it
        with suppress(LakebedError):
            CASES[name][0](world, machine)
        del world.weather.choose
        assert machine.crashes.has_lost
