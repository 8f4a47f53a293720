"""Workers share source splits by leases: each has one owner who lives, and numbers only rise."""

from collections.abc import Mapping

from lakebed.backends.memory import MemoryLeases
from lakebed.feeds.owned_splits import HANDOVER_SECONDS, LeasedSplits
from lakebed.model.feeds.positions import connection_id
from lakebed.ports.leases import WorkerId

CONNECTION = connection_id("c0" * 16)
SPLITS = [f"topic/{number}" for number in range(40)]


class Fleet:
    """Workers that see the same list of the living."""

    def __init__(self, *names: str) -> None:
        self.leases = MemoryLeases()
        self.living = [WorkerId(name) for name in names]
        self.now = 0.0
        self.newest: dict[str, int] = {}
        self.workers = {name: self.worker(name) for name in names}

    def worker(self, name: str) -> LeasedSplits:
        return LeasedSplits(
            worker=WorkerId(name),
            leases=self.leases,
            living=lambda: self.living,
            connection=CONNECTION,
            monotonic=lambda: self.now,
        )

    def join(self, name: str) -> None:
        self.living.append(WorkerId(name))
        self.workers[name] = self.worker(name)

    def die(self, name: str) -> None:
        self.living.remove(WorkerId(name))
        del self.workers[name]

    def owned(self, name: str) -> Mapping[str, int]:
        return self.workers[name].owned(SPLITS, lambda _: self.newest)

    def all_owned(self) -> list[str]:
        return sorted(split for name in self.workers for split in self.owned(name))


def test_each_source_split_has_one_owner_and_all_have_a_share() -> None:
    fleet = Fleet("a", "b", "c")
    assert fleet.all_owned() == sorted(SPLITS)
    assert all(len(fleet.owned(name)) > 4 for name in "abc")


def test_what_a_dead_worker_had_is_taken_at_once_and_with_a_higher_number() -> None:
    fleet = Fleet("a", "b")
    before = fleet.owned("a")
    fleet.owned("b")
    fleet.die("a")
    after = fleet.owned("b")
    assert sorted(after) == sorted(SPLITS)
    assert all(after[split] > number for split, number in before.items())


def test_a_worker_that_lives_lets_go_before_another_begins() -> None:
    fleet = Fleet("a")
    assert len(fleet.owned("a")) == len(SPLITS)
    fleet.join("b")
    assert fleet.owned("b") == {}, "all are worked on"
    kept = fleet.owned("a")
    moved = set(SPLITS) - set(kept)
    first = min(moved)
    fleet.workers["a"].release(first)
    assert set(fleet.owned("b")) == {first}


def test_a_worker_that_does_not_let_go_is_not_waited_for_for_ever() -> None:
    fleet = Fleet("a")
    fleet.owned("a")
    fleet.join("b")
    assert fleet.owned("b") == {}
    fleet.now = HANDOVER_SECONDS - 1
    assert fleet.owned("b") == {}
    fleet.now = HANDOVER_SECONDS
    moved = fleet.owned("b")
    assert moved
    assert set(moved).isdisjoint(fleet.owned("a"))


def test_a_number_is_greater_than_that_which_the_table_knows() -> None:
    """The lease store was restored to an earlier day."""
    fleet = Fleet("a")
    fleet.newest = {SPLITS[0]: 900}
    assert fleet.owned("a")[SPLITS[0]] > 900


def test_a_claim_that_another_worker_took_over_is_noticed() -> None:
    fleet = Fleet("a")
    fleet.owned("a")
    fleet.leases.claim(f"{CONNECTION}/{SPLITS[0]}", WorkerId("dead already"), 0)
    number = fleet.owned("a")[SPLITS[0]]
    owner = fleet.leases.owner(f"{CONNECTION}/{SPLITS[0]}")
    assert owner is not None
    assert (owner.worker, owner.number) == ("a", number)
