"""A worker can be killed at any effect, and what it sent before goes its way."""

from collections.abc import Callable

import pytest

from lakebed.backends.faulty import Crash, CrashPlan, Fault
from tests.unit.backends.faulty_world import World, busy, number


def test_every_effect_is_counted_by_name() -> None:
    plan = CrashPlan()
    assert len(list(busy(World(crashes=plan)))) == 21
    assert len(plan.effects) == 3 * 6
    assert plan.effects[:6] == [
        "object put",
        "log append",
        "queue send",
        "object delete",
        "log truncate",
        "queue delete",
    ]


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("at", range(1, 19))
def test_a_worker_can_be_killed_at_every_effect(at: int, moment: str) -> None:
    plan = CrashPlan(at, moment)  # type: ignore[arg-type]  # one of two words
    world = World(crashes=plan)
    with pytest.raises(Crash):
        list(busy(world))
    assert len(plan.effects) == at
    happened = at if moment == "after" else at - 1
    assert world.taken(number((happened + 4) // 6))
    assert not world.taken(number((happened + 4) // 6 + 1))
    assert world.queues.open("jobs").depth()[0] == (1 if happened % 6 in (3, 4, 5) else 0)


def test_a_dead_worker_does_nothing_on_its_way_out() -> None:
    world = World(crashes=CrashPlan(1, "before"))

    def work() -> None:
        try:
            world.put("a")
        finally:
            world.put("b")

    with pytest.raises(Crash):
        work()
    calls: list[Callable[[], object]] = [
        lambda: list(world.log.read_after(number(0))),
        world.log.store_time,
        lambda: world.log.append(number(1), b""),
        lambda: world.store.look("a"),
        lambda: list(world.store.list("")),
        lambda: world.store.delete(["a"]),
        lambda: world.queue.receive(messages_max=1, hidden_seconds=1),
        world.queue.depth,
    ]
    for call in calls:
        with pytest.raises(Crash):
            call()
    assert world.paths() == []


def test_late_requests_of_a_dead_worker_still_land() -> None:
    world = World(Fault.APPEND_LATE, crashes=CrashPlan(1, "after"))
    with pytest.raises(Crash):
        world.log.append(number(1), b"x")
    world.faults.settle()
    assert world.entries() == [b"x"]
