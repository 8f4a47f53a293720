"""Start as many tasks as a queue needs, within bounds. A task ends by itself when the queue is
empty.

Figures of queue and platform are about right, and old by seconds. Too many tasks do no harm: they
find nothing and end. Too few are made up for by the next tick.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime

from lakebed.config.fargate import ON_DEMAND_OF
from lakebed.errors import InvalidError, LakebedError
from lakebed.model.names import MICROS_PER_SECOND, Micros
from lakebed.observe import events
from lakebed.ports.job_queue import QueueLoad
from lakebed.ports.task_runner import TaskRunner

STARTS_MAX = 20
"""Most tasks that one tick starts: each is a request."""
TICK_SECONDS = 60
"""Seconds between ticks: one reports the tasks that failed since the one before."""


def tasks_to_start(load: QueueLoad, *, running: int, tasks_max: int) -> int:
    """Return how many tasks are missing: one for each waiting message for which no running task
    is free, within bounds. Tasks that do not run yet count as free."""
    free = max(0, running - load.in_hand)
    return max(0, min(load.waiting - free, tasks_max - running, STARTS_MAX))


def is_on_demand(time: Micros, number: int) -> bool:
    """Return whether one of the tasks of a tick is to run on demand. It follows from the tick's
    time and the task's number alone: a run that is repeated asks for the same."""
    minute = time // (TICK_SECONDS * MICROS_PER_SECOND)
    return (minute + number) % ON_DEMAND_OF == 0


class StartTasks:
    """Looks at a queue once, and starts the tasks that are missing. kind: of their jobs. load:
    tells of the queue. spot: whether most of them run on spot capacity."""

    def __init__(
        self,
        kind: str,
        *,
        load: Callable[[], QueueLoad],
        runner: TaskRunner,
        tasks_max: int,
        spot: bool = False,
    ) -> None:
        self._kind = kind
        self._load = load
        self._runner = runner
        self._tasks_max = tasks_max
        self._spot = spot

    def run(self, *, at: str) -> int:
        """Start them, and report those that failed since the tick before. Returns how many.

        at: the time for which the schedule went off, as it says. Several runs for one time
        start no more tasks than the one of them that wanted most.

        Raises:
            LakebedError: queue or platform cannot be looked at. One task that cannot be started is
                reported as an event; the next tick tries again.
        """
        time, load, running = _micros_of(at), self._load(), self._runner.running()
        count = tasks_to_start(load, running=running, tasks_max=self._tasks_max)
        started = self._start(count, at, time)
        if started:
            events.emit(
                events.TASKS_STARTED,
                kind=self._kind,
                tasks_count=started,
                running_count=running,
                waiting_count=load.waiting,
            )
        self._report_failed(time)
        return started

    def _start(self, count: int, at: str, time: Micros) -> int:
        for number in range(count):
            spot = self._spot and not is_on_demand(time, number)
            try:
                self._runner.start(f"{at}/{number}", spot=spot)
            except LakebedError as error:
                self._report_not_started(error)
                return number
        return count

    def _report_failed(self, time: Micros) -> None:
        for task in self._runner.failed_since(Micros(time - TICK_SECONDS * MICROS_PER_SECOND)):
            if task.ended_at >= time:
                continue  # the next tick reports it
            if not task.started:
                self._report_not_started(task.reason)
                continue
            events.emit(
                events.TASK_FAILED, level=logging.ERROR, kind=self._kind, reason=task.reason
            )

    def _report_not_started(self, reason: object) -> None:
        events.emit(events.TASK_NOT_STARTED, level=logging.ERROR, kind=self._kind, reason=reason)


def _micros_of(at: str) -> Micros:
    try:
        seconds = datetime.fromisoformat(at).timestamp()
    except ValueError:
        hint = "let a schedule call it, or give a time like 2026-11-22T10:00:00Z"
        raise InvalidError("not a time", at=at[:80], hint=hint) from None
    return Micros(int(seconds * MICROS_PER_SECOND))
