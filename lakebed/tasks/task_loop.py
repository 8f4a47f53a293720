"""The life of a task: it works on one queue until the queue has been empty for a while, it is old,
its jobs fail one after another, a job needs a newer release, or it is stopped.

Told to stop, it finishes its job. One that takes longer is given back to its queue, and the process
ends: a job may be run again, from its start, whatever became of an earlier run.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

import msgspec

from lakebed.errors import LakebedError
from lakebed.observe import events
from lakebed.ports.clock import Clock
from lakebed.ports.job_queue import JobQueue, Received
from lakebed.tasks.keep_hidden import keep_hidden
from lakebed.tasks.worker import Worker

LOOK_SECONDS = 0.5
"""Seconds between looks whether a task whose job runs is told to stop."""

Ending = Literal["idle", "age", "failures", "outdated", "stopped"]


class TaskLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits after which a task ends.

    idle_seconds: after so long without a message.
    age_seconds: no job begins after that.
    failures_max: so many in a row.
    wait_seconds: for a first message, with one request; a task that is told to stop may wait so
        long before it hears of it.
    """

    idle_seconds: float = 60.0
    age_seconds: float = 12 * 3_600.0
    failures_max: int = 5
    wait_seconds: float = 10.0


class TaskLoop:
    """Runs jobs of one worker. ended: is called when no more are taken."""

    def __init__(
        self,
        worker: Worker,
        *,
        clock: Clock,
        limits: TaskLimits | None = None,
        ended: Callable[[], None] = lambda: None,
    ) -> None:
        self._worker = worker
        self._clock = clock
        self._limits = limits or TaskLimits()
        self._ended = ended

    def run(self, should_stop: Callable[[], bool] = lambda: False) -> Ending:
        """Work until one of the ends. should_stop: asked between jobs."""
        began = self._clock.monotonic()
        jobs = 0
        try:
            ending, jobs = self._work(began, should_stop)
        finally:
            self._ended()
        seconds = round(self._clock.monotonic() - began, 3)
        events.emit(events.TASK_ENDED, ending=ending, jobs_count=jobs, seconds=seconds)
        return ending

    def _work(self, began: float, should_stop: Callable[[], bool]) -> tuple[Ending, int]:
        limits, clock = self._limits, self._clock
        failures, jobs, worked = 0, 0, began
        while not should_stop():
            asked = clock.monotonic()
            if asked - began >= limits.age_seconds:
                return "age", jobs
            try:
                outcome = self._worker.step(wait_seconds=limits.wait_seconds)
            except LakebedError as error:  # the queue itself: it may be busy
                events.emit(events.JOB_FAILED, code=error.code(), reason=error)
                outcome = "failed"
            if outcome is None:
                if clock.monotonic() - worked >= limits.idle_seconds:
                    return "idle", jobs
                clock.sleep(max(0.0, limits.wait_seconds - (clock.monotonic() - asked)))
                continue
            if outcome == "outdated":
                return "outdated", jobs
            worked = clock.monotonic()
            failures = failures + 1 if outcome == "failed" else 0
            jobs += outcome != "failed"
            if failures >= limits.failures_max:
                return "failures", jobs
        return "stopped", jobs


class StopRequest:
    """Asks the task to stop. Safe to ask from the handler of a signal."""

    def __init__(self) -> None:
        self._asked = threading.Event()

    def __call__(self, *_: object) -> None:
        self._asked.set()

    @property
    def is_asked(self) -> bool:
        """Return whether the task was asked to stop."""
        return self._asked.is_set()


@contextmanager
def kept_or_given_back(
    queue: JobQueue,
    message: Received,
    *,
    hidden_seconds: float,
    stop: StopRequest,
    grace_seconds: float,
    end_process: Callable[[], None],
) -> Iterator[None]:
    """Keep a message out of sight while its job runs. Told to stop, the job may take so long more;
    then its message is given back, and the process ends."""
    over = threading.Event()

    def watch() -> None:
        while not stop.is_asked:
            if over.wait(LOOK_SECONDS):
                return
        if over.wait(grace_seconds):
            return
        try:
            queue.extend(message.receipt, hidden_seconds=0)
        except LakebedError as error:  # it comes back all the same, later
            events.emit(events.JOB_FAILED, code=error.code(), reason=error)
        events.emit(events.JOB_GIVEN_BACK, receives=message.receives)
        end_process()

    threading.Thread(target=watch, name="give-back", daemon=True).start()
    try:
        with keep_hidden(queue, message.receipt, hidden_seconds=hidden_seconds):
            yield
    finally:
        over.set()
