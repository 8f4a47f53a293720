"""A world with a feed whose workers own what they claim: leases say who reads what (protocol R3).
Claims, beats and their answers are lost, workers stand still, and the store is restored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from lakebed.backends.faulty import (
    Crash,
    FaultyLeases,
    RegistryFault,
    RegistryFaults,
    RestoredLeases,
)
from lakebed.backends.memory import MemoryLeases
from lakebed.errors import LakebedError
from lakebed.feed_errors import DefinitionChangedError
from lakebed.feeds.living_workers import LivingWorkers
from lakebed.feeds.operating.position_admin import positions_in
from lakebed.feeds.owned_splits import LeasedSplits, NewestOwners
from lakebed.feeds.restarts import RestartRules
from lakebed.feeds.worker import FeedWorker, WantedPipeline
from lakebed.model.feeds.definitions import FeedFailure
from lakebed.model.feeds.positions import position_name
from lakebed.ports.leases import Leases, WorkerId
from tests.simulation.ending import keep_house
from tests.simulation.feeds import fed_actors
from tests.simulation.feeds.fed_twins import FedTwin
from tests.simulation.feeds.fed_world import CONNECTION, ROUNDS_MAX, FedWorld
from tests.simulation.machine import Machine, Parts
from tests.simulation.violation import ENDS, FED_OWNERS, Violation

RATE = 0.05
STALE_CHANCE = 0.2
"""That a worker is given the definition that it knows already."""
TURN_SECONDS = (0.1, 1.0, 2.0, 2.0)
LYING_EVERY = 3


class WatchedWorker(FeedWorker[list[Any]]):
    """A worker that hides no broken promise."""

    def _met(self, work: Any, error: Exception) -> None:  # noqa: ANN401 - private to workers
        if not isinstance(error, LakebedError):
            raise error
        super()._met(work, error)


class WatchedSplits(LeasedSplits):
    """A worker's share, of which each claim is looked at. known: gives the owner of a source split
    as the worker's own state has it."""

    def __init__(self, known: Callable[[str], int], **given: Any) -> None:  # noqa: ANN401 - its own
        super().__init__(**given)
        self._known = known

    def owned(self, splits: list[str], newest: NewestOwners) -> Mapping[str, int]:
        """Return this worker's share."""
        known = {split: self._known(split) for split in splits}
        before = dict(self._mine)
        try:
            return super().owned(splits, newest)
        finally:
            for name, number in self._mine.items():
                split = self._split(name)
                if before.get(name) != number and number <= known.get(split, 0):
                    story = f"claim {number} of {split} is older than {known[split]}, of the table"
                    raise Violation(FED_OWNERS, story)


class LeasedWorld(FedWorld):
    """All that one seed decides, with leases. In one of three a clock leaps by months."""

    tasks, tasks_long = 28, 84  # each takes longer

    def __init__(self, seed: int, scratch: Path, parts: Parts | None = None) -> None:
        self.workers: dict[Machine, WatchedWorker] = {}
        self.flushes = 0
        self.rates = dict.fromkeys(RegistryFault, RATE)
        self._given: dict[Machine, int] = {}
        self._lucks: list[RegistryFaults] = []
        super().__init__(seed, scratch, parts)
        self.leases = RestoredLeases(MemoryLeases(), self._luck())
        self.source.grow()
        self.source.grow()
        self.actors = list(LEASED_ACTORS)
        self.weights = [weight * self.rng.choice((1, 1, 2)) for weight in LEASED_ACTORS.values()]
        self._latest = self.actors[0]

    def theme_of(self, seed: int) -> str:
        """Return what else the world does."""
        return "clocks" if seed % LYING_EVERY == 0 else "all"

    def counts(self) -> Counter[str]:
        """Return how often each thing happened, to leases too."""
        fired = sum((luck.fired for luck in self._lucks), Counter[RegistryFault]())
        return super().counts() + Counter({str(kind): count for kind, count in fired.items()})

    def _luck(self, machine: Machine | None = None) -> RegistryFaults:
        """Return the ill luck of a machine with leases, or that of the store itself."""
        crashes = None if machine is None else machine.crashes
        self._lucks.append(RegistryFaults(self.weather, crashes, self.rates))
        return self._lucks[-1]

    def worker_of(self, machine: Machine) -> WatchedWorker:
        """Return the worker of a machine, which may have stood still since long ago."""
        if machine not in self.workers:
            leases = FaultyLeases(self.leases, self._luck(machine))
            worker, living = WorkerId(f"worker-{len(self._lucks)}"), LivingWorkers()
            self.workers[machine] = WatchedWorker(
                worker=worker,
                leases=leases,
                living=living,
                clock=machine.clock,
                wanted=partial(self._wanted, machine, worker, leases, living),
                note_failure=self._note_failure,
            )
        return self.workers[machine]

    def _wanted(
        self, machine: Machine, worker: WorkerId, leases: Leases, living: LivingWorkers
    ) -> list[WantedPipeline[list[Any]]]:
        """Return what a worker is to run, by the newest definition or by the one that it knows."""
        is_stale = bool(self.rates) and self.rng.random() < STALE_CHANCE
        version = self._given.get(machine, self.version) if is_stale else self.version
        self._given[machine] = version

        def opened() -> Any:  # noqa: ANN401 - a pipeline
            splits = WatchedSplits(
                partial(self._owner_known, machine),
                worker=worker,
                leases=leases,
                living=lambda: {worker, *living.living()},
                connection=CONNECTION,
                monotonic=machine.clock.monotonic,
            )
            return self._made_pipeline(machine, splits, version, is_calm=not self.rates)

        return [
            WantedPipeline(
                kind="connection",
                name="fed",
                version=version,
                restarts=RestartRules(),
                flush=self.flushes,
                open=opened,
            )
        ]

    def _note_failure(self, wanted: WantedPipeline[list[Any]], failure: FeedFailure) -> None:
        """Refuse to take down that a replaced definition failed; another one may not fail."""
        if wanted.version != self.version:
            raise DefinitionChangedError("the definition was replaced")
        raise Violation("no work is refused for ever", f"{failure.code}: {failure.reason}")

    def _owner_known(self, machine: Machine, split: str) -> int:
        state = machine.head(self.fed.id).state
        _, owner = state.position(position_name(CONNECTION, split)) or (None, 0)
        return owner

    # the end

    def take_rest(self, machine: Machine) -> None:
        """Let a new worker join those that live and whose clocks are right, until all is taken."""
        self.rates.clear()
        now = self.clock.now()
        self.workers = {
            m: w for m, w in self.workers.items() if m in self.machines and m.clock.now() == now
        }
        self.worker_of(machine)
        for count in range(ROUNDS_MAX):
            self.flushes += count % 3 == 0
            for other in list(self.workers):
                self._turn_in_peace(other)
            self.clock.advance(2)
            if count % 20 == 19:
                for name in ("fed", "quarantine"):
                    keep_house(self, machine, machine.catalog.find(name))
            if self._is_taken(machine):
                return
        raise Violation(ENDS, "workers in peace do not take all that there is")

    def _turn_in_peace(self, machine: Machine) -> None:
        try:
            self.workers[machine].turn()
        except Crash:
            del self.workers[machine]

    def _is_taken(self, machine: Machine) -> bool:
        at = positions_in(machine.catalog.find("fed"), CONNECTION)
        return all(
            split.kept == len(split.offsets)
            or (split.name in at and at[split.name].next == split.offsets[-1] + 1)
            for split in self.source.topics.values()
        )


def work(world: LeasedWorld, machine: Machine) -> None:
    """Let a machine's worker beat, listen, claim, read and commit for some seconds, while others
    do the same."""
    worker = world.worker_of(machine)
    for _ in range(world.rng.randrange(2, 10)):
        worker.turn()
        world.scheduler.pause(world.rng.choice(TURN_SECONDS))


def leave(world: LeasedWorld, machine: Machine) -> None:
    """Let a machine's worker end: it commits what it holds, and lets go."""
    if machine in world.workers:
        world.workers[machine].close()
        del world.workers[machine]


def flush(world: LeasedWorld, machine: Machine) -> None:
    """Let an operator wish that all is committed."""
    world.flushes += 1


def numbers_from_own_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """R3: who claims asks the store of leases alone, and not the table."""
    owned = LeasedSplits.owned

    def blind(self: LeasedSplits, splits: list[str], newest: NewestOwners) -> Mapping[str, int]:
        return owned(self, splits, lambda _: {})

    monkeypatch.setattr(LeasedSplits, "owned", blind)


LEASED_TWINS = {
    "claims by the store of leases alone": FedTwin(
        frozenset({FED_OWNERS}), (numbers_from_own_memory,), LeasedWorld
    ),
}

LEASED_ACTORS: dict[Any, int] = {
    actor: weight
    for actor, weight in fed_actors.FED_ACTORS.items()
    if actor is not fed_actors.take_turns
} | {work: 80, leave: 2, flush: 10}
