"""Each fault of leases and of the registry of feeds fires, and does what its name says."""

import random
from contextlib import suppress

import pytest

from lakebed.backends.faulty import (
    CALM,
    HARSH_REGISTRY,
    Crash,
    CrashPlan,
    Faults,
    FaultyFeedRegistry,
    FaultyLeases,
    RegistryFault,
    RegistryFaults,
    RestoredLeases,
)
from lakebed.backends.memory import MemoryFeedRegistry, MemoryLeases
from lakebed.errors import LakebedError, UnavailableError, UnknownOutcomeError
from lakebed.model.feeds.definitions import FeedFailure, NamedDefinition
from lakebed.ports.leases import WorkerId

ANN, BEN = WorkerId("ann"), WorkerId("ben")
FEED = NamedDefinition(kind="feed", name="orders", id="f1", body=b"{}")


class Small:
    """True stores, and the same as a worker meets them while one fault always happens."""

    def __init__(self, *faults: RegistryFault, crashes: CrashPlan | None = None) -> None:
        self.world = Faults(random.Random(7), CALM)
        self.luck = RegistryFaults(self.world, crashes, dict.fromkeys(faults, 1.0))
        self.true_leases, self.true_registry = MemoryLeases(), MemoryFeedRegistry()
        self.leases = FaultyLeases(self.true_leases, self.luck)
        self.registry = FaultyFeedRegistry(self.true_registry, self.luck)


WRITES = [
    (RegistryFault.WRITE_THROTTLED, UnavailableError, False, False),
    (RegistryFault.WRITE_LOST, UnknownOutcomeError, False, False),
    (RegistryFault.WRITE_LATE, UnknownOutcomeError, False, True),
    (RegistryFault.WRITE_UNANSWERED, UnknownOutcomeError, True, True),
]


@pytest.mark.parametrize(("fault", "error", "at_once", "later"), WRITES)
def test_faults_of_a_write(
    fault: RegistryFault, error: type[LakebedError], *, at_once: bool, later: bool
) -> None:
    small = Small(fault)
    calls = [
        lambda: small.leases.claim("a", ANN, 0),
        lambda: small.leases.beat(ANN, b""),
        lambda: small.registry.put(FEED, 0),
    ]
    for call in calls:
        with pytest.raises(error):
            call()
    for happened in (at_once, later):
        assert (small.true_leases.owner("a") is not None) == happened
        assert bool(small.true_leases.workers()) == happened
        assert (small.true_registry.get("feed", "orders") is not None) == happened
        small.world.settle()
    assert small.luck.fired[fault] == 3


def test_other_writes_meet_the_same_luck() -> None:
    small = Small(RegistryFault.WRITE_LOST)
    number = small.true_leases.claim("a", ANN, 0)
    small.true_leases.beat(ANN, b"")
    small.true_registry.put(FEED, 0)
    for call in (
        lambda: small.leases.release("a", ANN, number),
        lambda: small.leases.leave(ANN),
        lambda: small.registry.want("feed", "orders", "running", 1),
        lambda: small.registry.want_flush("orders", 0),
        lambda: small.registry.note_failure("feed", "orders", FeedFailure("x", "y", 1)),
        lambda: small.registry.drop("feed", "orders", 1),
        lambda: small.registry.change([]),
    ):
        with pytest.raises(UnknownOutcomeError):
            call()
    assert small.true_registry.number() == 1


def test_reads_are_throttled() -> None:
    small = Small(RegistryFault.READ_THROTTLED)
    for call in (
        small.leases.workers,
        small.leases.owners,
        lambda: small.leases.owner("a"),
        small.registry.number,
        lambda: small.registry.get("feed", "orders"),
        lambda: small.registry.list("feed"),
    ):
        with pytest.raises(UnavailableError):
            call()


def test_a_restored_store_hands_out_old_numbers_but_not_below_what_is_asked() -> None:
    small = Small()
    leases = RestoredLeases(small.true_leases, small.luck)
    assert [leases.claim("a", ANN, 0) for _ in range(3)] == [1, 2, 3]
    small.luck.rates = {RegistryFault.STORE_RESTORED: 1.0}
    assert leases.claim("a", BEN, 0) == 1
    small.luck.rates = {}
    assert leases.claim("a", ANN, 0) == 2
    assert leases.claim("a", BEN, 4) == 4, "the state's number is what keeps it rising"
    leases.release("a", BEN, 4)
    found = leases.owner("a")
    assert found is not None
    assert (found.number, found.worker) == (4, "")
    assert [one.number for one in leases.owners()] == [4]


def test_a_dead_worker_does_nothing_more() -> None:
    small = Small(crashes=CrashPlan(2, "after"))
    small.leases.beat(ANN, b"")
    with pytest.raises(Crash):
        small.leases.claim("a", ANN, 0)
    assert small.true_leases.owner("a") is not None
    for call in (small.leases.workers, small.registry.number, lambda: small.leases.leave(ANN)):
        with pytest.raises(Crash):
            call()


def test_every_fault_of_small_items_fires_in_a_harsh_world() -> None:
    small = Small()
    small.luck.rates = HARSH_REGISTRY
    leases = RestoredLeases(small.leases, small.luck)
    for n in range(300):
        with suppress(LakebedError):
            leases.claim(f"a{n % 3}", ANN, n)
        with suppress(LakebedError):
            small.registry.list("feed")
    assert set(small.luck.fired) == set(RegistryFault)
