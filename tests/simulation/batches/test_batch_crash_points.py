"""A submitter, a batcher and a task are killed before and after each of their effects, and lose
each answer. Afterwards another process does the same again; then all checkers look."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import pytest

from lakebed.backends.faulty import (
    CALM,
    Crash,
    CrashPlan,
    FaultyFileBatches,
    RegistryFault,
    RegistryFaults,
)
from lakebed.backends.faulty.crash_plan import Moment
from lakebed.errors import LakebedError
from lakebed.model.jobs import INGEST_QUEUE
from lakebed.ports.file_batches import FileBatches
from tests.simulation.batches.batch_actors import submit_named
from tests.simulation.batches.batched_world import FILES, BatchedWorld
from tests.simulation.machine import Machine
from tests.simulation.test_crash_points import SETTINGS, LosesAnswer

SEED = 3
EFFECTS_MAX = 60
Step = Callable[[BatchedWorld, Machine], None]


class LosesItemAnswer(RegistryFaults):
    """The n-th effect is done, and its answer lost. loses: says which."""

    def __init__(self, world: BatchedWorld, loses: LosesAnswer) -> None:
        super().__init__(world.weather, loses, {})
        self._loses = loses

    def happens(self, *which: RegistryFault) -> RegistryFault | None:
        """Return that it is unanswered, at the effect that it is for, once."""
        loses = self._loses
        is_meant = RegistryFault.WRITE_UNANSWERED in which
        if loses.has_lost or not is_meant or len(loses.effects) != loses._effect:
            return None
        loses.has_lost = True
        return RegistryFault.WRITE_UNANSWERED


class CalmWorld(BatchedWorld):
    """A world in which nothing happens but what a test does."""

    def some_settings(self) -> dict[str, object]:
        """Return settings that do not depend on chance."""
        return {
            **SETTINGS,
            "redispatch_seconds": 900,
            "batch_seconds_max": 0,
            "batch_files_max": 2,
            "job_id_seconds_min": 3_000 * 86_400,
        }

    def batches(self, machine: Machine) -> FileBatches:
        if isinstance(machine.crashes, LosesAnswer):
            return FaultyFileBatches(self.true_batches, LosesItemAnswer(self, machine.crashes))
        return super().batches(machine)


def submit(world: BatchedWorld, machine: Machine) -> None:
    submit_named(world, machine, list(FILES[:3]))


def make_batches(world: BatchedWorld, machine: Machine) -> None:
    world.batcher(machine).run(world.some_table(machine))


def take_in(world: BatchedWorld, machine: Machine) -> None:
    world.worker(machine).run(jobs_max=5)


def given_files(world: BatchedWorld, _: Machine) -> None:
    for name in FILES[:3]:
        world.landing.write(name)


def given_submitted(world: BatchedWorld, machine: Machine) -> None:
    given_files(world, machine)
    submit(world, machine)


def given_batches(world: BatchedWorld, machine: Machine) -> None:
    given_submitted(world, machine)
    make_batches(world, machine)


def given_changed(world: BatchedWorld, machine: Machine) -> None:
    given_batches(world, machine)
    world.landing.write(FILES[0])
    world.landing.delete(FILES[2])


def given_taken(world: BatchedWorld, machine: Machine) -> None:
    given_changed(world, machine)
    take_in(world, machine)


def given_lost_messages(world: BatchedWorld, machine: Machine) -> None:
    given_batches(world, machine)
    queue = world.shared.queues.open(INGEST_QUEUE)
    while found := queue.receive(messages_max=10, hidden_seconds=60):
        queue.delete(*(one.receipt for one in found))
    world.clock.advance(1_000)


CASES: Mapping[str, tuple[Step, Step]] = {
    "submitter": (submit, given_files),
    "batcher": (make_batches, given_submitted),
    "task": (take_in, given_batches),
    "task that leaves files out": (take_in, given_changed),
    "batcher that sees jobs to their end": (make_batches, given_taken),
    "batcher that sends jobs again": (make_batches, given_lost_messages),
}
"""What is killed, and after what."""


def worlds(
    name: str, scratch: Path, crashes: Iterator[CrashPlan]
) -> Iterator[tuple[BatchedWorld, Machine]]:
    """Yield one world after another in which a machine with the next plan is about to begin."""
    step, before = CASES[name]
    for plan in crashes:
        world = CalmWorld(SEED, scratch)
        world.weather.rates = CALM
        world.weather.stall_chance = 0.0
        before(world, world.calm_machine(informed=True))
        machine = world.calm_machine(informed=True, crashes=plan)
        world.machines = [machine]
        try:
            yield world, machine
            world.machines = [m for m in world.machines if not m.crashes.dead]
            take_over(world, step)
        finally:
            world.close()


def take_over(world: BatchedWorld, step: Step) -> None:
    """A new process, without a cache, does the same again, and submits what is there; then the
    world ends and is looked at."""
    machine = world.calm_machine()
    world.machines.append(machine)
    step(world, machine)
    for name in FILES[:3]:
        submit_named(world, machine, [name])
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
def test_who_works_on_batches_may_be_killed_at_every_effect(
    name: str, moment: Moment, tmp_path: Path
) -> None:
    effects = effects_of(name, tmp_path)
    assert 3 <= len(effects) <= EFFECTS_MAX, effects
    plans = (CrashPlan(at, moment) for at in range(1, len(effects) + 1))
    for world, machine in worlds(name, tmp_path, plans):
        with pytest.raises(Crash):
            CASES[name][0](world, machine)


@pytest.mark.parametrize("name", CASES)
def test_who_works_on_batches_may_lose_the_answer_to_every_effect(
    name: str, tmp_path: Path
) -> None:
    effects = effects_of(name, tmp_path)
    plans = (LosesAnswer(at) for at in range(1, len(effects) + 1))
    for world, machine in worlds(name, tmp_path, plans):
        loses = machine.crashes
        assert isinstance(loses, LosesAnswer)
        world.weather.choose = loses.choose  # type: ignore[method-assign]  # only it
        with suppress(LakebedError):
            CASES[name][0](world, machine)
        del world.weather.choose
        assert loses.has_lost
