"""What goes on in a world of batches: files come and go, are submitted, batched, and taken in."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from lakebed.errors import InvalidError
from tests.simulation import actors
from tests.simulation.batches.batched_world import FILES

BatchActor = Callable[["BatchedWorld", "Machine"], None]

if TYPE_CHECKING:
    from tests.simulation.batches.batched_world import BatchedWorld
    from tests.simulation.machine import Machine


def some_names(world: BatchedWorld) -> list[str]:
    return world.rng.sample(FILES, world.rng.choice((1, 1, 2, 4)))


def write_and_submit(world: BatchedWorld, machine: Machine) -> None:
    """Put files, some of them again, and submit them; others may write there meanwhile."""
    names = some_names(world)
    for name in names:
        world.landing.write(name)
    submit_named(world, machine, names)


def submit_again(world: BatchedWorld, machine: Machine) -> None:
    """Submit what is there, as events do that come twice, or late."""
    submit_named(world, machine, some_names(world))


def submit_named(world: BatchedWorld, machine: Machine, names: list[str]) -> None:
    service, files = world.submitting(machine)
    table = world.some_table(machine)
    with world.expected_errors(InvalidError):  # it is gone
        service.run(table.id, table.name, names)
        world.acknowledged |= {(one.name, one.version) for one in files.found}


def overwrite(world: BatchedWorld, _: Machine) -> None:
    """Put a file again and tell nobody."""
    world.landing.write(world.rng.choice(FILES))


def delete_file(world: BatchedWorld, _: Machine) -> None:
    """Take a file away."""
    world.landing.delete(world.rng.choice(FILES))


def deny_or_allow(world: BatchedWorld, _: Machine) -> None:
    """Take a permission away, or give it back: a file may be refused, and submitted again."""
    world.landing.deny_or_allow(world.rng.choice(FILES))


def make_batches(world: BatchedWorld, machine: Machine) -> None:
    """Do what the schedule does."""
    world.batcher(machine).run(world.some_table(machine))


def take_in(world: BatchedWorld, machine: Machine) -> None:
    """Do some jobs of the queue."""
    world.worker(machine).run(jobs_max=world.rng.randrange(1, 4))


BATCH_ACTORS: dict[Any, int] = {
    write_and_submit: 25,
    submit_again: 10,
    overwrite: 3,
    delete_file: 3,
    deny_or_allow: 6,
    make_batches: 30,
    take_in: 30,
    actors.create_jobs: 3,
    actors.work: 4,
    actors.split: 1,
    actors.snapshot: 2,
}

WHILE_OTHERS_STALL: tuple[Any, ...] = (
    write_and_submit,
    submit_again,
    make_batches,
    make_batches,
    take_in,
)
"""What is dangerous for a planner, a submitter or a task that hangs at a door."""
