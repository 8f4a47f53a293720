"""Many tasks, one at a time: each stops at its doors, and chance says who goes on.

Services are plain functions, so each task has a thread; but only the one that holds the baton runs,
and it gives the baton away only in `pause`. The same seed runs the same steps.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from types import TracebackType

from lakebed.backends.memory import MachineClock, VirtualClock
from lakebed.model.names import Micros


class Stopped(BaseException):
    """The world ends while the task waits."""


class _Kept:
    """Keeps whatever leaves the block."""

    def __init__(self) -> None:
        self.error: BaseException | None = None

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> bool:
        if not isinstance(error, Stopped):
            self.error = error
        return True


class Task:
    """Some work under way. wakes_at: seconds of world time before which it does not go on."""

    def __init__(self, name: str, work: Callable[[], None], back: threading.Lock) -> None:
        self.name = name
        self.wakes_at = 0.0
        self.is_done = False
        self.stopped = False
        self.kept = _Kept()
        self._work = work
        self._back = back
        self._hand = _IDLE.pop() if _IDLE else _Hand()
        self._hand.task = self

    def resume(self) -> None:
        """Give the task the baton; return when it gives it back."""
        self._hand.go.release()
        self._back.acquire()

    def give_back(self) -> None:
        """From inside the task: wait until it is resumed."""
        self._back.release()
        self._hand.go.acquire()
        if self.stopped:
            raise Stopped

    def run(self) -> None:
        """In the hand's thread: do the work, then give the baton back for good."""
        with self.kept:
            if not self.stopped:
                self._work()
        self.is_done = True
        _IDLE.append(self._hand)
        self._back.release()


class _Hand:
    """A thread that does one task after another: starting one takes longer than many a task."""

    def __init__(self) -> None:
        self.task: Task | None = None
        self.go = threading.Lock()
        self.go.acquire()
        threading.Thread(target=self._loop, daemon=True).start()

    def _loop(self) -> None:
        while True:
            self.go.acquire()
            task, self.task = self.task, None
            assert task is not None, "a hand goes when it has a task"
            task.run()
            del task


_IDLE: list[_Hand] = []
"""Hands without a task; whoever holds the baton may take one."""


class Scheduler:
    """Runs tasks by turns on one virtual clock."""

    def __init__(self, clock: VirtualClock, rng: random.Random) -> None:
        self._clock = clock
        self._rng = rng
        self._back = threading.Lock()
        self._back.acquire()
        self._current: Task | None = None
        self.tasks: list[Task] = []

    def start(self, name: str, work: Callable[[], None]) -> Task:
        """Begin some work; it runs when it is chosen."""
        task = Task(name, work, self._back)
        self.tasks.append(task)
        return task

    def step(self) -> None:
        """Let one task go on to its next pause. When all sleep, time passes until one wakes.

        Raises whatever the task raised.
        """
        now = self._clock.monotonic()
        ready = [t for t in self.tasks if t.wakes_at <= now]
        if not ready:
            soonest = min(self.tasks, key=lambda t: t.wakes_at)
            self._clock.advance(soonest.wakes_at - now)
            ready = [soonest]
        task = self._rng.choice(ready)
        self._current = task
        task.resume()
        self._current = None
        if task.is_done:
            self.tasks.remove(task)
            if task.kept.error is not None:
                raise task.kept.error

    def finish(self) -> None:
        """Let all tasks run to their end."""
        while self.tasks:
            self.step()

    def pause(self, seconds: float = 0.0) -> None:
        """From inside a task: let others go on, for so long at least. Outside: time passes."""
        task = self._current
        if task is None:
            self._clock.advance(seconds)
            return
        task.wakes_at = self._clock.monotonic() + seconds
        task.give_back()

    def stop(self) -> None:
        """End all tasks where they are."""
        for task in self.tasks:
            self._current, task.stopped = task, True
            while not task.is_done:  # it may pause again on its way out
                task.resume()
        self._current = None
        self.tasks.clear()


class ScheduledClock(MachineClock):
    """A machine's clock, wrong by some offset; while it sleeps, others go on. It may lie for some
    time, until somebody sets it."""

    def __init__(self, world: VirtualClock, offset_micros: int, scheduler: Scheduler) -> None:
        super().__init__(world, offset_micros)
        self._scheduler = scheduler
        self._lie = 0
        self._lies_until = 0.0

    @property
    def lies(self) -> bool:
        """Whether it is wrong by months just now."""
        return self._world.monotonic() < self._lies_until

    def now(self) -> Micros:
        """Return the wall clock, wrong as it is."""
        right = super().now()
        return Micros(max(0, right + self._lie)) if self.lies else right

    def lie(self, micros: int, *, seconds: float) -> None:
        """Be wrong by so much for so long."""
        self._lie, self._lies_until = micros, self._world.monotonic() + seconds

    def sleep(self, seconds: float) -> None:
        """Let others go on for so long."""
        self._scheduler.pause(seconds)
