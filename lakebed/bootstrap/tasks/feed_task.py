"""A task that works on feeds: what `lakebed feed run` does, until no task is needed, and nothing
else."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from lakebed.bootstrap.app import App
from lakebed.bootstrap.feeds.worker import feed_worker
from lakebed.bootstrap.tasks.task_process import END_PROCESS, GRACE_SECONDS, run_task
from lakebed.config.environments import TaskEnvironment
from lakebed.feeds.known_definitions import read_definitions
from lakebed.feeds.living_workers import LivingWorkers
from lakebed.feeds.pacing.wanted_tasks import Need, heard_workers, need_of
from lakebed.feeds.pacing.wanted_workers import wanted_workers
from lakebed.feeds.pacing.worker_names import TASK_PREFIX
from lakebed.feeds.task_life import FeedTaskLife, FeedTaskLimits
from lakebed.observe import events
from lakebed.ports.leases import WorkerId
from lakebed.tasks.task_loop import LOOK_SECONDS, Ending, StopRequest

AGE_SHARE_SPARED = 1 / 12
"""Greatest share of a task's age that is left out, at random: tasks that were started together do
not end together."""


class FeedTask:
    """A worker of feeds, and when it ends. limits: None: the usual."""

    def __init__(self, app: App, stop: StopRequest, limits: FeedTaskLimits | None = None) -> None:
        limits = limits or _limits(app)
        self._app = app
        self._stop = stop
        self._name = WorkerId(f"{TASK_PREFIX}{app.rng.getrandbits(64):016x}")
        self._living = LivingWorkers()
        self._worker = feed_worker(app, name=self._name, living=self._living)
        self._life = FeedTaskLife(clock=app.clock, need=self._need, limits=limits)
        self._ending: Ending | None = None

    def run(self, should_stop: Callable[[], bool] = lambda: False) -> Ending:
        """Work until one of the ends; then commit what is held, and let go. Returns which it was.

        should_stop: asked all the time.
        """
        began = self._app.clock.monotonic()

        def is_over() -> bool:
            self._app.usage.keep_if_due()
            self._ending = self._ending or self._life.ending(is_stopped=should_stop())
            return self._ending is not None

        with _ended_in_time(self._stop):
            self._worker.run(is_over)
        ending = self._ending or "stopped"
        seconds = round(self._app.clock.monotonic() - began, 3)
        events.emit(events.TASK_ENDED, ending=ending, worker=self._name, seconds=seconds)
        return ending

    def _need(self) -> Need:
        bounds = wanted_workers(read_definitions(self._app.feeds.definitions))
        heard = heard_workers(self._app.feeds.leases.workers(), self._living.living())
        return need_of(self._name, bounds, heard)


def run() -> int:
    """Run a task of the instance that this process's variables name. Returns the exit code."""
    return run_task(TaskEnvironment, lambda app, _, stop: FeedTask(app, stop))


def _limits(app: App) -> FeedTaskLimits:
    usual = FeedTaskLimits()
    age_seconds = usual.age_seconds * (1 - app.rng.random() * AGE_SHARE_SPARED)
    return FeedTaskLimits(age_seconds=age_seconds)


@contextmanager
def _ended_in_time(
    stop: StopRequest,
    *,
    grace_seconds: float = GRACE_SECONDS,
    end_process: Callable[[], None] = END_PROCESS,
) -> Iterator[None]:
    """Until the block ends: so long after the task was asked to stop, end the process. What it
    holds is dropped; who comes next begins at the committed position."""
    is_done = threading.Event()

    def watch() -> None:
        while not stop.is_asked:
            if is_done.wait(LOOK_SECONDS):
                return
        asked = time.monotonic()
        while time.monotonic() - asked < grace_seconds:
            if is_done.wait(LOOK_SECONDS):
                return
        events.emit(events.TASK_ENDED, ending="overtime")
        end_process()

    watcher = threading.Thread(target=watch, name="ended-in-time", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        is_done.set()
        watcher.join()
