"""With whom a worker shares its feeds, by its name: what it is to own, it would take."""

from collections.abc import Mapping
from functools import partial

import pytest

from lakebed.backends.memory import MemoryLeases
from lakebed.feeds.owned_splits import LeasedSplits
from lakebed.feeds.pacing.worker_names import scope_of, sharing, worker_name
from lakebed.model.feeds.positions import connection_id
from lakebed.ports.leases import WorkerId

CONNECTION = connection_id("c0" * 16)
SPLITS = [f"topic/{number}" for number in range(40)]
ALL, TASK, TAKE = WorkerId("worker-1"), WorkerId("task-2"), WorkerId("take-3")
ORDERS, SAME, TRIPS = (
    worker_name(number, only)
    for number, only in ((4, ["orders", "eu"]), (5, ["eu", "orders"]), (6, ["trips"]))
)


def test_workers_of_all_feeds_share_them_and_each_other_scope_is_its_own() -> None:
    living = [ALL, TASK, TAKE, ORDERS, SAME, TRIPS]
    assert sharing(ALL, living) == sharing(TASK, living) == {ALL, TASK}
    assert sharing(ORDERS, living) == {ORDERS, SAME}
    assert sharing(TRIPS, living) == {TRIPS}
    assert sharing(TAKE, [*living, WorkerId("take-7")]) == {TAKE, WorkerId("take-7")}
    assert sharing(worker_name(9), []) == {worker_name(9)}
    assert scope_of(worker_name(9)) == scope_of(TASK)


class Fleet:
    """Workers that all live; some of them would not take these source splits."""

    def __init__(self, *names: WorkerId) -> None:
        self.leases = MemoryLeases()
        self.living = list(names)
        self.now = 0.0
        self.workers = {name: self.worker(name) for name in names}

    def worker(self, name: WorkerId) -> LeasedSplits:
        return LeasedSplits(
            worker=name,
            leases=self.leases,
            living=lambda: self.living,
            connection=CONNECTION,
            monotonic=lambda: self.now,
            sharing=partial(sharing, name),
        )

    def owned(self, name: WorkerId) -> Mapping[str, int]:
        return self.workers[name].owned(SPLITS, lambda _: {})


@pytest.mark.parametrize("able", [ALL, TAKE, ORDERS])
def test_no_source_split_waits_for_a_worker_that_never_takes_it(able: WorkerId) -> None:
    fleet = Fleet(ALL, TASK, TAKE, ORDERS, TRIPS)
    fleet.living = [one for one in fleet.living if one == able or one not in sharing(able, [one])]
    assert set(fleet.owned(able)) == set(SPLITS)


def test_what_a_worker_of_another_scope_holds_is_not_free_until_it_lets_go_or_dies() -> None:
    fleet = Fleet(ORDERS, TAKE)
    held = fleet.owned(ORDERS)
    for _ in range(5):
        fleet.now += 10
        assert fleet.owned(TAKE) == {}
        assert fleet.owned(ORDERS) == held, "neither takes from the other for ever"
    fleet.living.remove(ORDERS)
    assert set(fleet.owned(TAKE)) == set(SPLITS)
