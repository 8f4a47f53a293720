"""How many tasks are started, and that no answer that is lost, late or double makes too many."""

import logging

import pytest

from lakebed.backends.memory import MemoryTaskRunner, VirtualClock
from lakebed.errors import DeniedError, InvalidError, UnavailableError, UnknownOutcomeError
from lakebed.observe import events
from lakebed.ports.job_queue import QueueLoad
from lakebed.tasks.start_tasks import STARTS_MAX, StartTasks, tasks_to_start


@pytest.mark.parametrize(
    ("waiting", "in_hand", "running", "tasks_max", "starts"),
    [
        (0, 0, 0, 10, 0),
        (3, 0, 0, 10, 3),
        (3, 0, 1, 10, 2),  # one was started by the tick before, and takes none yet
        (3, 3, 3, 10, 3),  # three work, and three more are wanted
        (3, 2, 3, 10, 2),  # one of those that run is free
        (100, 0, 0, 10, 10),
        (100, 10, 10, 10, 0),
        (100, 4, 8, 10, 2),
        (100, 0, 12, 10, 0),  # a setting was lowered
        (1, 5, 0, 10, 1),  # five were in hand of tasks that were killed
        (5, 0, 0, 0, 0),
        (10_000, 0, 0, 200, STARTS_MAX),
    ],
)
def test_there_are_as_many_tasks_as_messages_within_bounds(
    waiting: int, in_hand: int, running: int, tasks_max: int, starts: int
) -> None:
    load = QueueLoad(waiting=waiting, in_hand=in_hand)
    assert tasks_to_start(load, running=running, tasks_max=tasks_max) == starts


class Platform:
    """A queue, a platform, and the ticks of a schedule. Tasks take no messages by themselves."""

    def __init__(self, tasks_max: int = 10, *, spot: bool = False) -> None:
        self.clock = VirtualClock()
        self.refusals: list[Exception] = []
        self.runner = MemoryTaskRunner(self.clock, refuses=self._refuse)
        self.load = QueueLoad(0, 0)
        self._service = StartTasks(
            "ingest", load=lambda: self.load, runner=self.runner, tasks_max=tasks_max, spot=spot
        )

    def _refuse(self) -> None:
        if self.refusals:
            raise self.refusals.pop(0)

    def tick(self, at: str = "2026-11-22T10:00:00Z") -> int:
        return self._service.run(at=at)


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the events that were logged."""
    return [record.getMessage().partition(" ")[0] for record in caplog.records]


def test_a_tick_that_comes_twice_starts_tasks_once() -> None:
    platform = Platform()
    platform.load = QueueLoad(3, 0)
    assert platform.tick() == 3
    platform.load = QueueLoad(5, 0)  # seen before those three were, by somebody else
    platform.runner.running = lambda: 0  # type: ignore[method-assign]  # answers lag behind
    assert platform.tick() == 5
    assert len(platform.runner._running) == 5
    platform.tick("2026-11-22T10:01:00Z")
    assert len(platform.runner._running) == 10


@pytest.mark.parametrize(
    "refusal",
    [
        UnavailableError("no capacity"),
        UnknownOutcomeError("no answer"),
        DeniedError("not permitted", hint="permit it"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_task_that_cannot_be_started_is_told_and_tried_again(
    refusal: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    platform = Platform()
    platform.load = QueueLoad(3, 0)
    platform.refusals = [refusal]
    with caplog.at_level(logging.ERROR, logger="lakebed"):
        assert platform.tick() == 0
    assert told(caplog) == [events.TASK_NOT_STARTED]
    assert platform.tick("2026-11-22T10:01:00Z") == 3


def test_tasks_that_failed_are_told_once(caplog: pytest.LogCaptureFixture) -> None:
    platform = Platform()
    platform.load = QueueLoad(3, 0)
    start = 1_795_341_600  # 2026-11-22T10:00:00Z
    platform.clock.sleep(start - platform.clock.now() / 1_000_000)
    platform.tick("2026-11-22T10:00:00Z")
    platform.load = QueueLoad(0, 0)
    platform.clock.sleep(10)
    platform.runner.end(failure="image not found", started=False)
    platform.runner.end(failure="exit code 137")
    platform.runner.end()
    caplog.clear()
    with caplog.at_level(logging.ERROR, logger="lakebed"):
        for minute in range(4):
            platform.tick(f"2026-11-22T10:0{minute}:00Z")
    assert told(caplog) == [events.TASK_NOT_STARTED, events.TASK_FAILED]


@pytest.mark.parametrize("at_once", [1, 3, 4, 20])
def test_of_tasks_on_spot_capacity_a_fourth_is_started_on_demand(at_once: int) -> None:
    platform = Platform(tasks_max=1_000, spot=True)
    for minute in range(40):
        running = platform.runner.running()
        platform.load = QueueLoad(waiting=at_once, in_hand=running)
        assert platform.tick(f"2026-11-22T10:{minute:02}:00Z") == at_once
    assert platform.runner.running() == 40 * at_once
    assert platform.runner.running_on_spot() * 4 == 3 * 40 * at_once


def test_a_tick_that_comes_twice_asks_for_the_same_capacity_twice() -> None:
    platform = Platform(spot=True)
    platform.load = QueueLoad(5, 0)
    platform.runner.running = lambda: 0  # type: ignore[method-assign]  # answers lag behind
    for _ in range(2):
        assert platform.tick() == 5  # the platform refuses a token that comes with another capacity
    assert len(platform.runner._running) == 5


def test_no_task_runs_on_spot_capacity_unless_that_is_set() -> None:
    platform = Platform()
    platform.load = QueueLoad(10, 0)
    assert platform.tick() == 10
    assert platform.runner.running_on_spot() == 0


def test_a_time_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidError, match="not a time"):
        Platform().tick("tomorrow")
