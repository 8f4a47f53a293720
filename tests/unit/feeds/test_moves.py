"""Owners of source splits while workers come, die, stand still and wake up."""

import random
from contextlib import suppress

import pytest

from lakebed.backends.faulty import (
    CALM,
    Faults,
    FaultyLeases,
    RegistryFault,
    RegistryFaults,
    RestoredLeases,
)
from lakebed.backends.memory import MemoryLeases
from lakebed.errors import LakebedError
from lakebed.feeds.claims import Moves, moves, wanted_owner
from lakebed.feeds.living_workers import DEAD_SECONDS, LivingWorkers
from lakebed.ports.leases import Leases, Owner, OwnerNumber, WorkerId

ANN, BEN, NONE = WorkerId("ann"), WorkerId("ben"), WorkerId("")
SPLITS = [f"c/{n}" for n in range(24)]
BY_ANN = [s for s in SPLITS if wanted_owner(s, [ANN, BEN]) == ANN]
BY_BEN = [s for s in SPLITS if s not in BY_ANN]


def owned(names: list[str], worker: WorkerId, number: int = 1) -> dict[str, Owner]:
    return {name: Owner(name, OwnerNumber(number), worker) for name in names}


def held(names: list[str], number: int = 1) -> dict[str, OwnerNumber]:
    return dict.fromkeys(names, OwnerNumber(number))


def test_a_lone_worker_claims_everything() -> None:
    assert moves(ANN, SPLITS, [ANN], {}, {}) == Moves(claim=tuple(SPLITS))


def test_a_worker_that_joins_waits_for_what_a_living_one_has() -> None:
    owners = owned(SPLITS, ANN)
    assert moves(BEN, SPLITS, [ANN, BEN], owners, {}) == Moves()
    assert moves(ANN, SPLITS, [ANN, BEN], owners, held(SPLITS)) == Moves(give_back=tuple(BY_BEN))
    owners[BY_BEN[0]] = Owner(BY_BEN[0], OwnerNumber(1), NONE)
    assert moves(BEN, SPLITS, [ANN, BEN], owners, {}) == Moves(claim=(BY_BEN[0],))


def test_what_a_dead_worker_had_is_claimed_at_once() -> None:
    owners = owned(BY_ANN, ANN) | owned(BY_BEN, BEN)
    assert moves(ANN, SPLITS, [ANN], owners, held(BY_ANN)) == Moves(claim=tuple(BY_BEN))


def test_a_worker_that_was_taken_for_dead_learns_what_it_has_lost() -> None:
    owners = owned(SPLITS, BEN, 2)
    found = moves(ANN, SPLITS, [ANN, BEN], owners, held(SPLITS))
    assert found == Moves(lost=tuple(SPLITS)), "what ben has, ben gives back"


def test_a_claim_of_its_own_that_it_does_not_remember_is_made_anew() -> None:
    """Its answer was lost: another number is the one that counts."""
    owners = owned(BY_ANN, ANN)
    assert moves(ANN, SPLITS, [ANN, BEN], owners | owned(BY_BEN, BEN), {}).claim == tuple(BY_ANN)


def test_a_claim_of_its_own_that_it_does_not_know_of_is_released_when_it_is_to_be_anothers() -> (
    None
):
    owners = owned(SPLITS, ANN, 3)
    found = moves(ANN, SPLITS, [ANN, BEN], owners, held(BY_ANN, 3))
    assert found == Moves(release=tuple(owners[name] for name in BY_BEN))


def test_an_older_claim_that_a_restored_store_knows_takes_nothing_away() -> None:
    assert moves(ANN, BY_ANN, [ANN, BEN], owned(BY_ANN, BEN, 3), held(BY_ANN, 7)) == Moves()


def test_a_source_split_that_is_gone_is_given_back() -> None:
    assert moves(ANN, [], [ANN], owned(["c/x"], ANN), held(["c/x"])) == Moves(give_back=("c/x",))


class Worker:
    """Beats, looks and moves. stopped: it stands still, and knows nothing of it."""

    def __init__(self, name: str, leases: Leases) -> None:
        self.id = WorkerId(name)
        self.leases = leases
        self.watcher = LivingWorkers()
        self.held: dict[str, OwnerNumber] = {}
        self.stopped = False

    def step(self, now: float, state: dict[str, int]) -> None:
        """One round of two seconds. state: of the table: the greatest number that moved it."""
        with suppress(LakebedError):
            self.leases.beat(self.id, b"")
        try:
            self.watcher.see(self.leases.workers(), now)
            owners = {owner.name: owner for owner in self.leases.owners()}
        except LakebedError:
            return
        living = {*self.watcher.living(), self.id}
        found = moves(self.id, SPLITS, living, owners, self.held)
        for name in found.lost:
            del self.held[name]
        for name in found.give_back[:1]:
            with suppress(LakebedError):
                self.leases.release(name, self.id, self.held[name])
                del self.held[name]
        for owner in found.release:
            with suppress(LakebedError):
                self.leases.release(owner.name, self.id, owner.number)
        for name in found.claim:
            with suppress(LakebedError):
                number = self.leases.claim(name, self.id, state[name] + 1)
                assert number > state[name], "a restored store hands out no old number (R3)"
                self.held[name] = number
        for name, number in list(self.held.items()):  # it commits: the state refuses a lower owner
            if number < state[name]:
                del self.held[name]
            state[name] = max(state[name], number)


@pytest.mark.parametrize("seed", range(40))
def test_each_source_split_finds_one_owner_that_the_state_takes(seed: int) -> None:
    """Workers come, die and stand still; requests are lost, late, unanswered; the store is restored
    now and then. Once this ends, all is owned within a minute, by those who are to own it."""
    rng = random.Random(seed)
    world = Faults(rng, CALM)
    luck = RegistryFaults(world, rates=dict.fromkeys(RegistryFault, 0.05))
    store = MemoryLeases()
    leases = RestoredLeases(FaultyLeases(store, luck), luck)
    workers = [Worker(f"w{n}", leases) for n in range(3)]
    state, born, now = dict.fromkeys(SPLITS, 0), 3, 0.0
    before = dict(state)
    for _ in range(60):
        now += rng.uniform(1.8, 2.2)
        if rng.random() < 0.08:
            workers.append(Worker(f"w{born}", leases))
            born += 1
        if rng.random() < 0.06 and len(workers) > 1:
            workers.remove(rng.choice(workers))
        if rng.random() < 0.1:
            rng.choice(workers).stopped ^= True
        for worker in rng.sample(workers, len(workers)):
            if not worker.stopped:
                worker.step(now, state)
        world.deliver_late(0.3)
        assert all(state[name] >= before[name] for name in SPLITS), "owner numbers only rise"
        before = dict(state)
    luck.rates = {}
    world.settle()
    for worker in workers:
        worker.stopped = False
    for _ in range(60):
        now += 2.0
        for worker in workers:
            worker.step(now, state)
    names = [worker.id for worker in workers]
    for worker in workers:
        wanted = {name for name in SPLITS if wanted_owner(name, names) == worker.id}
        assert set(worker.held) == wanted
        assert all(worker.held[name] == state[name] for name in wanted)


@pytest.mark.parametrize("workers", [2, 5])
def test_what_a_dead_worker_had_has_an_owner_within_ten_seconds(workers: int) -> None:
    store = MemoryLeases()
    living = [Worker(f"w{n}", store) for n in range(workers)]
    state, now = dict.fromkeys(SPLITS, 0), 0.0
    while sum(len(worker.held) for worker in living) < len(SPLITS) or now < 60:
        now += 2.0
        for worker in living:
            worker.step(now, state)
        assert now < 120
    dead = living.pop()
    assert dead.held
    died = now
    while not set(dead.held) <= {name for worker in living for name in worker.held}:
        now += 2.0
        for worker in living:
            worker.step(now, state)
        assert now - died <= 10.0
    assert now - died >= DEAD_SECONDS
