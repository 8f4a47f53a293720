"""What lands a push is killed before and after each of its effects, and loses each answer (protocol
R8 to R11): a receiver that puts segments, and a worker that lands and deletes them.

Afterwards senders repeat, another worker takes over, and all checkers look.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from lakebed.backends.faulty import CALM, Crash, CrashPlan
from lakebed.backends.faulty.crash_plan import Moment
from lakebed.errors import LakebedError
from tests.simulation.feeds.pushed_world import Push, PushedWorld
from tests.simulation.machine import Machine
from tests.simulation.test_crash_points import SETTINGS, LosesAnswer

SEED = 2
PUSHES = ((1, 2, 3), (4,), (5, 6), (7,))
TURNS = 8
LANDING_EFFECTS, RECEIVING_EFFECTS = range(6, 30), range(4, 10)


class CalmWorld(PushedWorld):
    """A world in which nothing happens but what a test does."""

    def some_settings(self) -> dict[str, object]:
        """Return settings that do not depend on chance."""
        return dict(SETTINGS)


def some_pushes(world: PushedWorld) -> list[Push]:
    """Return requests, all but the last one with a key."""
    keys = [f"key-{ids[0]}" for ids in PUSHES[:-1]] + [""]
    world.pushed = [
        Push(ids, key, world.clock.now()) for ids, key in zip(PUSHES, keys, strict=True)
    ]
    return world.pushed


def receive(world: PushedWorld, machine: Machine) -> None:
    for push in world.pushed:
        world.send(machine, push)


def land(world: PushedWorld, machine: Machine) -> None:
    """Land in a few rounds."""
    pipeline = world.pipeline_of(machine)
    for turn in range(TURNS):
        world.clock.advance(1)
        with suppress(LakebedError):
            pipeline.turn(is_draining=turn % 2 == 1)


Act = Callable[[PushedWorld, Machine], None]


def worlds(
    scratch: Path, crashes: Iterator[CrashPlan], act: Act
) -> Iterator[tuple[PushedWorld, Machine]]:
    """Yield one world after another in which a machine with the next plan is about to act."""
    for plan in crashes:
        world = CalmWorld(SEED, scratch)
        world.weather.rates = CALM
        world.machines = []
        some_pushes(world)
        if act is land:
            receive(world, world.calm_machine())
        machine = world.calm_machine(informed=True, crashes=plan)
        world.machines.append(machine)
        try:
            yield world, machine
            world.machines = [m for m in world.machines if not m.crashes.dead]
            world.end()
            world.check()
        finally:
            world.close()


def effects_of(scratch: Path, act: Act) -> list[str]:
    effects: list[str] = []
    for world, machine in worlds(scratch, iter([CrashPlan()]), act):
        act(world, machine)
        effects = list(machine.crashes.effects)
    return effects


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("act", [receive, land])
def test_what_lands_a_push_may_be_killed_at_every_effect(
    act: Act, moment: Moment, tmp_path: Path
) -> None:
    effects = effects_of(tmp_path, act)
    assert len(effects) in (LANDING_EFFECTS if act is land else RECEIVING_EFFECTS), effects
    if act is land:
        kinds = {effect.partition(" of ")[0] for effect in effects}
        assert {"log append", "object put", "object delete"} <= kinds
    plans = (CrashPlan(at, moment) for at in range(1, len(effects) + 1))
    for world, machine in worlds(tmp_path, plans, act):
        with pytest.raises(Crash):
            act(world, machine)


@pytest.mark.parametrize("act", [receive, land])
def test_what_lands_a_push_may_lose_the_answer_to_every_effect(act: Act, tmp_path: Path) -> None:
    effects = effects_of(tmp_path, act)
    plans = (LosesAnswer(at) for at in range(1, len(effects) + 1))
    for world, machine in worlds(tmp_path, plans, act):
        world.weather.choose = machine.crashes.choose  # type: ignore[method-assign] # only it
        act(world, machine)
        del world.weather.choose
        assert machine.crashes.has_lost
