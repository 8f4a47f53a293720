"""A feed's round is killed before and after each of its effects, and loses each answer.

Its records are rows and bad ones, so that it marks positions, adds to the quarantine and commits
(protocol R13); in one kind of worlds some are late, and diverted to the quarantine (R19).
Afterwards another worker takes over, whose decoder answers differently; then all checkers look.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from lakebed.backends.faulty import CALM, Crash, CrashPlan
from lakebed.backends.faulty.crash_plan import Moment
from lakebed.errors import LakebedError
from tests.simulation.feeds.fed_world import FedWorld, OwnsAs
from tests.simulation.feeds.timed_world import TimedWorld
from tests.simulation.machine import Machine
from tests.simulation.test_crash_points import SETTINGS, LosesAnswer

SEED = 2
EFFECTS = range(4, 40)
"""Marks, files and commits of two logs, at least."""
TURNS = 12


class CalmWorld(FedWorld):
    """A world in which nothing happens but what a test does."""

    def some_settings(self) -> dict[str, object]:
        """Return settings that do not depend on chance."""
        return dict(SETTINGS)


class CalmTimedWorld(TimedWorld):
    """The same, with event time; each worker owns all."""

    late = ("divert",)

    def some_settings(self) -> dict[str, object]:
        """Return settings that do not depend on chance."""
        return dict(SETTINGS)

    def owned_as(self, owner: int) -> OwnsAs:
        """Return what a worker believes to own."""
        return OwnsAs(owner)


def take_all(world: FedWorld, machine: Machine) -> None:
    """Let a machine's worker take what there is, in a few rounds."""
    pipeline = world.pipeline_of(machine)
    for turn in range(TURNS):
        with suppress(LakebedError):  # the source does not answer now and then
            pipeline.turn(is_draining=turn % 4 == 3)


def worlds(
    kind: type[FedWorld],
    scratch: Path,
    crashes: Iterator[CrashPlan],
    *,
    behind_another: bool,
    seed: int = SEED,
) -> Iterator[tuple[FedWorld, Machine]]:
    """Yield one world after another in which a machine with the next plan is about to begin.

    behind_another: whether a worker died before it, between quarantine and table.
    """
    for plan in crashes:
        world = kind(seed, scratch)
        world.weather.rates = CALM
        world.machines = []
        world.source.produce(30)
        if behind_another:
            first = world.killed_machine(effect=4, moment="after")
            world.machines.append(first)
            with pytest.raises(Crash):
                take_all(world, first)
        machine = world.calm_machine(informed=True, crashes=plan)
        world.machines.append(machine)
        try:
            yield world, machine
            world.machines = [m for m in world.machines if not m.crashes.dead]
            world.end()
            world.check()
        finally:
            world.close()


def check_late(world: FedWorld) -> None:
    """Look whether a world of event time that was left alone had late rows: else nothing of them is
    tried by killing it."""
    assert not isinstance(world, CalmTimedWorld) or world.timed_auditor.late.total()


def effects_of(kind: type[FedWorld], scratch: Path, *, behind_another: bool) -> list[str]:
    effects: list[str] = []
    plans = iter([CrashPlan()])
    for world, machine in worlds(kind, scratch, plans, behind_another=behind_another):
        take_all(world, machine)
        effects = list(machine.crashes.effects)
    check_late(world)
    return effects


@pytest.mark.parametrize(
    ("kind", "behind_another"), [(CalmWorld, False), (CalmWorld, True), (CalmTimedWorld, True)]
)
@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_round_may_be_killed_at_every_effect(
    moment: Moment, tmp_path: Path, kind: type[FedWorld], *, behind_another: bool
) -> None:
    effects = effects_of(kind, tmp_path, behind_another=behind_another)
    assert len(effects) in EFFECTS, effects
    assert {"log append", "object put"} <= {effect.partition(" of ")[0] for effect in effects}
    plans = (CrashPlan(at, moment) for at in range(1, len(effects) + 1))
    for world, machine in worlds(kind, tmp_path, plans, behind_another=behind_another):
        with pytest.raises(Crash):
            take_all(world, machine)


@pytest.mark.parametrize(("kind", "seed"), [(CalmWorld, SEED), (CalmTimedWorld, 10)])
def test_a_round_may_lose_the_answer_to_every_effect(
    kind: type[FedWorld], seed: int, tmp_path: Path
) -> None:
    at, has_lost = 0, True
    while has_lost:
        at += 1
        plan = LosesAnswer(at)
        for world, machine in worlds(kind, tmp_path, iter([plan]), behind_another=True, seed=seed):
            world.weather.choose = plan.choose  # type: ignore[method-assign]  # only it
            take_all(world, machine)
            del world.weather.choose
        has_lost = plan.has_lost
    check_late(world)
    assert at in EFFECTS
