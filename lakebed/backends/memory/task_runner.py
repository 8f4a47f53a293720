"""Tasks in memory: they run until a test says how they ended."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lakebed.model.names import Micros
from lakebed.ports.clock import Clock
from lakebed.ports.task_runner import FailedTask


class MemoryTaskRunner:
    """Remembers what was asked for. refuses: is called before each start; what it raises is what
    the platform says."""

    def __init__(self, clock: Clock, *, refuses: Callable[[], None] = lambda: None) -> None:
        self._clock = clock
        self._refuses = refuses
        self._asked: set[str] = set()
        self._running: list[str] = []
        self._spot: set[str] = set()
        self._failed: list[FailedTask] = []

    def running(self) -> int:
        """Return how many have not ended."""
        return len(self._running)

    def running_on_spot(self) -> int:
        """Return how many of them run on spot capacity."""
        return len(self._spot.intersection(self._running))

    def start(self, once: str, *, spot: bool = False) -> None:
        """Start one, unless that was asked for before."""
        self._refuses()
        assert (once in self._spot) == spot or once not in self._asked, "asked for otherwise before"
        if spot:
            self._spot.add(once)
        if once not in self._asked:
            self._asked.add(once)
            self._running.append(once)

    def failed_since(self, time: Micros) -> Sequence[FailedTask]:
        """Return those that failed."""
        return [task for task in self._failed if task.ended_at >= time]

    def end(self, *, failure: str = "", started: bool = True) -> None:
        """Let the oldest end. failure: why, if it did not end in order."""
        self._running.pop(0)
        if failure:
            self._failed.append(FailedTask(started, failure, self._clock.now()))
