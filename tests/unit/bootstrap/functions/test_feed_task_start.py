"""How many tasks are started for feeds, tick after tick."""

import msgspec
import pytest

from lakebed.backends.memory import MemoryLeases, MemoryTaskRunner, VirtualClock
from lakebed.bootstrap.functions.feed_task_start import FEEDS, load_of
from lakebed.errors import UnavailableError, UnknownOutcomeError
from lakebed.ports.leases import WorkerId
from lakebed.tasks.start_tasks import StartTasks
from tests.unit.feeds.definition_stories import ORDERS, Definitions

TEN, LATER = "2026-11-22T10:00:00Z", "2026-11-22T10:01:00Z"
ELASTIC = ORDERS.replace('extends = "Strict"', 'extends = "Elastic"\nworkers_max = 3')
SEVERAL = ORDERS.replace('extends = "Strict"', 'extends = "Strict"\nworkers_min = 3')


class Starter:
    """A registry, a platform, and the ticks of a schedule."""

    def __init__(self, tasks_max: int = 10, text: str = ORDERS) -> None:
        self.definitions = Definitions()
        self.definitions.apply(text)
        self.refusals: list[Exception] = []
        self.leases = MemoryLeases()
        self.clock = VirtualClock(on_sleep=self._beat)
        self.saying: dict[str, bytes] = {}
        self.runner = MemoryTaskRunner(VirtualClock(), refuses=self._refuse)
        self.service = StartTasks(
            FEEDS,
            load=lambda: load_of(self.definitions.registry, self.leases, self.clock),
            runner=self.runner,
            tasks_max=tasks_max,
        )

    def _beat(self, _seconds: float = 0.0) -> None:
        for name, said in self.saying.items():
            self.leases.beat(WorkerId(name), said)

    def says(self, worker: str, load: float) -> None:
        """Let a worker live from now on and ask for more."""
        said = [{"load": load, "workers_min": 1, "workers_max": 3, "is_asking": True}]
        self.saying[worker] = msgspec.json.encode(said)
        self._beat()

    def _refuse(self) -> None:
        if self.refusals:
            raise self.refusals.pop(0)


def test_tasks_are_started_when_a_feed_is_and_none_before_or_after() -> None:
    starter = Starter()
    assert starter.service.run(at=TEN) == 0
    starter.definitions.lifecycle.run("start", "orders")
    assert starter.service.run(at=LATER) == 1
    assert starter.service.run(at="2026-11-22T10:02:00Z") == 0
    starter.definitions.lifecycle.run("stop", "orders")
    starter.runner._running.clear()
    assert starter.service.run(at="2026-11-22T10:03:00Z") == 0


@pytest.mark.parametrize(("tasks_max", "started"), [(10, 3), (2, 2), (0, 0)])
def test_a_policy_asks_for_several_and_a_setting_bounds_them(tasks_max: int, started: int) -> None:
    starter = Starter(tasks_max, SEVERAL)
    starter.definitions.lifecycle.run("start", "orders")
    assert starter.service.run(at=TEN) == started


def test_a_load_starts_tasks_at_once_and_a_dead_one_none() -> None:
    starter = Starter(text=ELASTIC)
    starter.definitions.lifecycle.run("start", "orders")
    assert starter.service.run(at=TEN) == 1
    starter.says("task-a", 2.4)
    assert starter.service.run(at=LATER) == 2
    starter.says("task-a", 9.0)
    assert starter.service.run(at="2026-11-22T10:02:00Z") == 0, "policies allow three"
    starter.saying.clear()
    starter.runner._running.clear()
    assert starter.service.run(at="2026-11-22T10:03:00Z") == 1, "it was killed, and its beat stays"


def test_a_load_starts_no_more_tasks_than_the_setting_and_than_others_leave() -> None:
    starter = Starter(2, ELASTIC)
    starter.definitions.lifecycle.run("start", "orders")
    starter.says("task-a", 3.0)
    assert starter.service.run(at=TEN) == 2
    other = Starter(text=ELASTIC)
    other.definitions.lifecycle.run("start", "orders")
    other.says("worker-a", 2.0)
    other.says("worker-b", 0.2)
    assert other.service.run(at=TEN) == 1, "machines of another network do the rest"


def test_two_starters_of_one_tick_start_as_many_as_one() -> None:
    starter = Starter(text=SEVERAL)
    starter.definitions.lifecycle.run("start", "orders")
    starter.runner.running = lambda: 0  # type: ignore[method-assign]  # answers lag behind
    assert [starter.service.run(at=TEN) for _ in range(2)] == [3, 3]
    assert len(starter.runner._running) == 3


def test_a_start_without_an_answer_is_made_up_for() -> None:
    starter = Starter()
    starter.definitions.lifecycle.run("start", "orders")
    starter.refusals = [UnknownOutcomeError("no answer")]
    assert starter.service.run(at=TEN) == 0
    assert starter.service.run(at=LATER) == 1


def test_a_registry_that_is_throttled_fails_the_run_and_starts_nothing() -> None:
    starter = Starter()

    def number() -> int:
        raise UnavailableError("throttled")

    starter.definitions.lifecycle.run("start", "orders")
    starter.definitions.true.number = number  # type: ignore[method-assign]  # it is throttled
    with pytest.raises(UnavailableError):
        starter.service.run(at=TEN)
    assert not starter.runner._running
