"""Workers share source splits by leases: each has one owner who lives, and numbers only rise."""

from collections.abc import Mapping

import pytest

from lakebed.backends.memory import MemoryLeases
from lakebed.feed_errors import WorkerLostError
from lakebed.feeds.claims import GIVE_BACK_PARTS, GIVE_BACK_SECONDS, wanted_splits
from lakebed.feeds.owned_splits import MISSED_SECONDS, LeasedSplits
from lakebed.model.feeds.positions import connection_id
from lakebed.ports.leases import WorkerId

CONNECTION = connection_id("c0" * 16)
SPLITS = [f"topic/{number}" for number in range(40)]


class Fleet:
    """Workers that see the same list of the living."""

    def __init__(self, *names: str, stops_at_loss: bool = False, splits: int = len(SPLITS)) -> None:
        self.stops_at_loss = stops_at_loss
        self.splits = [f"topic/{number}" for number in range(splits)]
        self.names = [f"{CONNECTION}/{split}" for split in self.splits]
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
            stops_at_loss=self.stops_at_loss,
        )

    def join(self, name: str) -> None:
        self.living.append(WorkerId(name))
        self.workers[name] = self.worker(name)

    def die(self, name: str) -> None:
        self.living.remove(WorkerId(name))
        del self.workers[name]

    def owned(self, name: str) -> Mapping[str, int]:
        return self.workers[name].owned(self.splits, lambda _: self.newest)

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


@pytest.mark.parametrize("count", [2, 40, 1_000])
def test_a_worker_that_lives_lets_go_in_four_parts_before_another_begins(count: int) -> None:
    fleet = Fleet("a", splits=count)
    assert len(fleet.owned("a")) == count
    fleet.join("b")
    assert fleet.owned("b") == {}, "all are worked on"
    moved, share = set[str](), len(wanted_splits(WorkerId("b"), fleet.names, fleet.living))
    for _ in range(GIVE_BACK_PARTS):
        leaving = set(fleet.splits) - set(fleet.owned("a")) - moved
        assert len(leaving) <= -(-share // GIVE_BACK_PARTS)
        assert set(fleet.splits) - set(fleet.owned("a")) - moved == leaving, (
            "no more before its time"
        )
        assert set(fleet.owned("b")) == moved, "it is drained first"
        for split in leaving:
            fleet.workers["a"].release(split)
        moved |= leaving
        assert set(fleet.owned("b")) == moved
        fleet.now += GIVE_BACK_SECONDS
    assert len(moved) == share
    assert fleet.all_owned() == sorted(fleet.splits)


def test_a_worker_that_joins_later_is_given_its_share_as_soon() -> None:
    fleet = Fleet("a", splits=100)
    fleet.owned("a")
    for name in "bc":
        fleet.join(name)
        for _ in range(GIVE_BACK_PARTS):
            for other in list(fleet.workers):
                for split in {*fleet.workers[other]._mine} - {
                    f"{CONNECTION}/{split}" for split in fleet.owned(other)
                }:
                    fleet.workers[other].release(split.partition("/")[2])
            fleet.now += GIVE_BACK_SECONDS
        shares = {n: len(fleet.owned(n)) for n in fleet.workers}
        wanted = {n: len(wanted_splits(WorkerId(n), fleet.names, fleet.living)) for n in shares}
        assert shares == wanted


def test_a_number_is_greater_than_that_which_the_table_knows() -> None:
    """The lease store was restored to an earlier day."""
    fleet = Fleet("a")
    fleet.newest = {SPLITS[0]: 900}
    assert fleet.owned("a")[SPLITS[0]] > 900


def test_a_claim_that_another_worker_took_over_is_noticed() -> None:
    fleet = Fleet("a", "b")
    split = min(fleet.owned("a"))
    fleet.leases.claim(f"{CONNECTION}/{split}", WorkerId("b"), 0)
    assert split not in fleet.owned("a")


def test_a_lost_worker_stops_a_connection_whose_policy_says_so() -> None:
    fleet = Fleet("a", "b", stops_at_loss=True)
    fleet.all_owned()
    fleet.die("a")
    before = fleet.owned("b")
    fleet.now += MISSED_SECONDS
    with pytest.raises(WorkerLostError, match="worker=a"):
        fleet.owned("b")
    assert set(fleet.owned("b")) > set(before), "who starts it again has all"


def test_a_worker_that_gave_up_what_it_had_is_not_lost() -> None:
    fleet = Fleet("a", "b", stops_at_loss=True)
    for split in fleet.owned("a"):
        fleet.workers["a"].release(split)
    fleet.die("a")
    for _ in range(3):
        fleet.now += MISSED_SECONDS
        assert sorted(fleet.owned("b")) == sorted(SPLITS)


def test_a_worker_that_was_not_heard_yet_is_not_lost() -> None:
    """The first beat of a worker may find the store away: then it knows only itself."""
    fleet = Fleet("a", "b", stops_at_loss=True)
    fleet.all_owned()
    living, fleet.living = fleet.living, [WorkerId("b")]
    fleet.owned("b")
    fleet.living = living
    fleet.now += 2 * MISSED_SECONDS
    assert fleet.all_owned() == sorted(SPLITS)
