"""Every service is killed before and after each of its effects, and loses each of its answers.

Afterwards another process takes over: it sends the same request again, or the next tick comes; then
all checkers look.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest

from lakebed.backends.faulty import CALM, Crash, CrashPlan, Fault
from lakebed.backends.faulty.crash_plan import Moment
from lakebed.backends.memory.job_queues import RECEIVES_MAX
from lakebed.errors import LakebedError
from lakebed.model.predicates.language import field
from lakebed.model.ranges import Range
from lakebed.ports.sorted_files import Selection
from lakebed.query.conditions import condition_of, everything_of
from lakebed.statestore.open_table import OpenTable
from tests.simulation import actors, queued
from tests.simulation.actors import send
from tests.simulation.deleting import delete_from, rewrite_without
from tests.simulation.ending import keep_house
from tests.simulation.machine import Machine
from tests.simulation.truth import Asked
from tests.simulation.world import World

SEED = 1
EFFECTS_MAX = 60
SETTINGS = {
    "compaction_strategy": "basic",
    "job_files_max": 2,
    "leaf_rows_max": 20,
    "leaf_files_max": 100,
    "shared_file_rows_max": 0,
    "garbage_seconds_min": 3_600,
    "pending_seconds_max": 3_600,
    "redispatch_seconds": 0,
}
Step = Callable[[World, Machine], None]


def main_table(machine: Machine) -> OpenTable:
    return machine.catalog.find("main")


def take_rows(world: World, machine: Machine) -> None:
    send(world, machine, main_table(machine), the_request(world, machine))


def the_request(world: World, machine: Machine) -> Asked:
    known = world.truth.asked.get(b"the request")
    asked = known or world.ask(main_table(machine).id, "the request", rows_max=60)
    world.truth.asked[b"the request"] = asked
    return asked


def create_jobs(_: World, machine: Machine) -> None:
    machine.create_jobs.run(main_table(machine))


def run_jobs(_: World, machine: Machine) -> None:
    machine.worker.run(jobs_max=10)


def give_up(_: World, machine: Machine) -> None:
    with main_table(machine).head.reading() as state:
        jobs = [job.id for job in state.jobs()]
    for job in jobs:
        machine.give_up.run(main_table(machine), job, reason="an operator")


def send_commits(world: World, machine: Machine) -> None:
    asked = the_request(world, machine)
    queued.queue_request(world, machine, main_table(machine), asked)


def commit_what_is_queued(_: World, machine: Machine) -> None:
    machine.committer.run(batches_max=10)


def give_up_dead_jobs(_: World, machine: Machine) -> None:
    machine.give_up_dead_jobs.run()


def split(_: World, machine: Machine) -> None:
    machine.split.run(main_table(machine))


def collect(_: World, machine: Machine) -> None:
    machine.collect.run(main_table(machine))


def sweep(_: World, machine: Machine) -> None:
    machine.sweep.run(main_table(machine))


def snapshot_and_truncate(world: World, machine: Machine) -> None:
    actors.write_snapshot(machine, main_table(machine))


def create_table(world: World, machine: Machine) -> None:
    with world.expected_errors(actors.TableExistsError):
        machine.catalog.create("other", world.schema)


def drop_table(world: World, machine: Machine) -> None:
    with world.expected_errors(actors.TableMissingError):
        machine.catalog.drop("other")


def delete_range(world: World, machine: Machine) -> None:
    middle = condition_of(world.schema, ranges={"key": Range(*the_middle(world))})
    delete_from(world, machine, main_table(machine), middle)


def delete_rows(world: World, machine: Machine) -> None:
    wanted = Selection((everything_of(world.schema),), None, field("id") > 20)
    rewrite_without(world, machine, main_table(machine), wanted)


def the_middle(world: World) -> tuple[object, object]:
    """Return two keys between which some rows lie, and beyond which others do."""
    rows = world.auditors[world.main.id].rows_at(world.auditors[world.main.id].number)
    keys = sorted({row[0] for row in rows})
    return keys[len(keys) // 3], keys[2 * len(keys) // 3]


# what must have been, so that there is something to do


def some_files(world: World, machine: Machine) -> None:
    for _ in range(5):
        send(world, machine, main_table(machine), world.ask(main_table(machine).id, rows_max=9))


def many_rows(world: World, machine: Machine) -> None:
    for _ in range(4):
        send(world, machine, main_table(machine), world.ask(main_table(machine).id, rows_max=60))
    create_jobs(world, machine)


def some_jobs(world: World, machine: Machine) -> None:
    some_files(world, machine)
    create_jobs(world, machine)


def queued_commits(world: World, machine: Machine) -> None:
    """In messages and in objects; some will be refused."""
    some_jobs(world, machine)
    for _ in range(2):
        small = world.calm_machine(informed=True)
        world.machines.append(small)
        table = main_table(small)
        queued.queue_request(world, small, table, world.ask(table.id))
        queued.queue_claims_of(world, small, table)


def dead_jobs(world: World, machine: Machine) -> None:
    some_jobs(world, machine)
    for _ in range(RECEIVES_MAX + 1):
        while machine.queue.receive(messages_max=10, hidden_seconds=10):
            pass
        world.clock.advance(20)


def some_garbage(world: World, machine: Machine) -> None:
    some_jobs(world, machine)
    run_jobs(world, machine)
    world.clock.advance(4_000)


def what_a_killed_job_left(world: World, machine: Machine) -> None:
    some_files(world, machine)
    killed = world.killed_machine(effect=2)
    world.machines.append(killed)
    with pytest.raises(Crash):
        send(world, killed, main_table(killed), world.ask(main_table(killed).id, rows_max=60))
    world.clock.advance(50 * 3_600)
    some_files(world, machine)
    world.clock.advance(50 * 3_600)


def two_snapshots(world: World, machine: Machine) -> None:
    for _ in range(2):
        some_files(world, machine)
        actors.write_snapshot(machine, main_table(machine))
    some_files(world, machine)


def another_table(world: World, machine: Machine) -> None:
    table = machine.catalog.create("other", world.schema)
    send(world, machine, table, world.ask(table.id))
    actors.write_snapshot(machine, table)


class Case(msgspec.Struct, frozen=True):
    """What is killed, after what."""

    step: Step
    before: Step


CASES: Mapping[str, Case] = {
    "ingest": Case(take_rows, some_files),
    "compaction, jobs created": Case(create_jobs, some_files),
    "compaction, jobs run": Case(run_jobs, some_jobs),
    "compaction, given up": Case(give_up, some_jobs),
    "commits sent": Case(send_commits, some_files),
    "commits of the queue": Case(commit_what_is_queued, queued_commits),
    "dead letters": Case(give_up_dead_jobs, dead_jobs),
    "split": Case(split, many_rows),
    "range of keys deleted": Case(delete_range, some_jobs),
    "rows deleted": Case(delete_rows, some_jobs),
    "collection": Case(collect, some_garbage),
    "sweep": Case(sweep, what_a_killed_job_left),
    "snapshot and truncation": Case(snapshot_and_truncate, two_snapshots),
    "table created": Case(create_table, some_files),
    "table dropped": Case(drop_table, another_table),
}


def worlds(
    name: str, scratch: Path, crashes: Iterator[CrashPlan]
) -> Iterator[tuple[World, Machine]]:
    """Yield one world after another in which a machine with the next plan is about to begin."""
    for plan in crashes:
        world = World(SEED, scratch, theme="all", settings=SETTINGS)
        world.weather.rates = CALM
        CASES[name].before(world, world.calm_machine(informed=True))
        machine = world.calm_machine(informed=True, crashes=plan)
        world.machines = [machine]
        try:
            yield world, machine
            world.machines = [m for m in world.machines if not m.crashes.dead]
            take_over(world, name)
        finally:
            world.close()


def take_over(world: World, name: str) -> None:
    """A new process, without a cache, does the same again; then the world ends and is looked at."""
    machine = world.calm_machine()
    world.machines.append(machine)
    CASES[name].step(world, machine)
    for _ in range(3):
        keep_house(world, machine, main_table(machine))
        world.clock.advance(50 * 3_600)
    world.end()
    world.check()


def effects_of(name: str, scratch: Path) -> list[str]:
    plan = CrashPlan()
    for world, machine in worlds(name, scratch, iter([plan])):
        CASES[name].step(world, machine)
        plan = machine.crashes
        effects = list(plan.effects)
    return effects


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("name", CASES)
def test_a_service_may_be_killed_at_every_effect(name: str, moment: Moment, tmp_path: Path) -> None:
    effects = effects_of(name, tmp_path)
    assert 1 <= len(effects) <= EFFECTS_MAX, effects
    plans = (CrashPlan(at, moment) for at in range(1, len(effects) + 1))
    for world, machine in worlds(name, tmp_path, plans):
        with pytest.raises(Crash):
            CASES[name].step(world, machine)


@pytest.mark.parametrize("name", CASES)
def test_a_service_may_lose_the_answer_to_every_effect(name: str, tmp_path: Path) -> None:
    effects = effects_of(name, tmp_path)
    plans = (LosesAnswer(at) for at, effect in enumerate(effects, 1) if "name" not in effect)
    for world, machine in worlds(name, tmp_path, plans):
        world.weather.choose = machine.crashes.choose  # type: ignore[method-assign] # only it
        with suppress(LakebedError):
            CASES[name].step(world, machine)
        del world.weather.choose
        assert machine.crashes.has_lost


class LosesAnswer(CrashPlan):
    """Nobody is killed: the n-th effect is done, and its answer lost."""

    FAULTS = frozenset(
        {
            Fault.APPEND_UNANSWERED,
            Fault.PUT_UNANSWERED,
            Fault.DELETE_UNANSWERED,
            Fault.SEND_UNANSWERED,
            Fault.TRUNCATE_PARTIAL,
            Fault.MESSAGE_DELETE_LOST,
        }
    )

    def __init__(self, effect: int) -> None:
        super().__init__()
        self._effect = effect
        self.has_lost = False

    def choose(self, *faults: Fault) -> Fault | None:
        """Return the fault that loses the answer, at the effect it is for, once."""
        meant = self.FAULTS.intersection(faults)
        if self.has_lost or len(self.effects) != self._effect or not meant:
            return None
        self.has_lost = True
        return next(iter(meant))
