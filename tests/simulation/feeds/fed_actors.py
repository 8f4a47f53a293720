"""What goes on in a world with a feed: turns of workers, a changing source, housekeeping."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from lakebed.errors import LakebedError
from lakebed.feed_errors import DefinitionMovedError, OwnerFencedError
from lakebed.statestore.log_entries.table_changes import Clear
from lakebed.statestore.open_table import start_of
from tests.simulation import actors
from tests.simulation.machine import Machine

if TYPE_CHECKING:
    from lakebed.feeds.pipeline import Pipeline
    from tests.simulation.actors import Actor
    from tests.simulation.feeds.fed_world import FedWorld
    from tests.simulation.world import World


def take_turns(world: FedWorld, machine: Machine) -> None:
    """Let a machine's worker read and commit. It stops where others were faster, and begins again
    as they do: with a new number of an owner, and the newest definition."""
    pipeline, forget = world.pipeline_of(machine), partial(world.forget_pipeline, machine)
    for _ in range(world.rng.randrange(1, 5)):
        turn_once(world, pipeline, forget)


class _Forget(Protocol):
    def __call__(self, *, to_newest: bool) -> None: ...


def turn_once(world: World, pipeline: Pipeline[Any], forget: _Forget) -> None:
    """Take one turn. forget: is called where the next one is to be of a new owner, or by the newest
    definition."""
    try:
        pipeline.turn(is_draining=world.rng.random() < 0.4)
    except OwnerFencedError:
        forget(to_newest=False)
        raise
    except DefinitionMovedError:
        forget(to_newest=True)
        raise
    except LakebedError:
        if world.rng.random() < 0.5:
            pipeline.forget()
        raise


def replay(world: FedWorld, machine: Machine) -> None:
    """Let an operator on a machine take records in quarantine once more; he may go away at any
    moment, and begin again on another machine."""
    replay_some(world, world.replay_of(machine), partial(world.end_replay, machine))


class _Ended(Protocol):
    def __call__(self, *, is_whole: bool) -> None: ...


def replay_some(world: World, pipeline: Pipeline[Any], ended: _Ended) -> None:
    """Take some turns of a replay. ended: is called when it is over."""
    try:
        for count in range(world.rng.randrange(1, 6)):
            turn = pipeline.turn(is_draining=count % 2 == 1)
            if pipeline.is_idle and not turn.has_read:
                ended(is_whole=True)
                return
    except (OwnerFencedError, DefinitionMovedError):
        ended(is_whole=False)
        raise
    except LakebedError:
        if world.rng.random() < 0.5:
            ended(is_whole=False)
        raise


def produce(world: FedWorld, machine: Machine) -> None:
    world.source.produce(world.rng.randrange(1, 20))


def grow(world: FedWorld, machine: Machine) -> None:
    world.source.grow()


def make_anew(world: FedWorld, machine: Machine) -> None:
    world.source.make_anew()


def forget_old(world: FedWorld, machine: Machine) -> None:
    world.source.forget_old()


def define(world: FedWorld, machine: Machine) -> None:
    """Change the feed's definition: workers notice when they are refused."""
    world.version += 1


def clear(world: FedWorld, machine: Machine) -> None:
    """Clear the table, and not its quarantine."""
    clear_table(machine, "fed")


def clear_table(machine: Machine, name: str) -> None:
    """Clear a table without a tracker, as another process might."""
    table = machine.catalog.find(name)
    with table.head.reading() as state:
        start = start_of(state)
    table.head.commit(table.own(start, Clear(())))


FED_ACTORS: dict[Actor, int] = {
    take_turns: 60,
    replay: 15,
    produce: 25,
    grow: 2,
    make_anew: 1,
    forget_old: 2,
    define: 1,
    clear: 1,
    actors.create_jobs: 6,
    actors.work: 8,
    actors.run_any_job: 2,
    actors.give_up: 1,
    actors.split: 5,
    actors.collect: 4,
    actors.sweep: 5,
    actors.snapshot: 2,
    actors.snapshot_twice: 2,
    actors.damage_snapshot: 1,
}
