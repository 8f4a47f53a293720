"""Time of a server that cannot be told what time it is: a test's minutes are seconds there."""

from __future__ import annotations

from collections.abc import Sequence

from lakebed.backends.system import SystemClock
from lakebed.model.names import MICROS_PER_SECOND, Micros
from lakebed.ports.clock import Uptime
from lakebed.ports.job_queue import JobQueue, JobQueues, Message, Received

TIMES_FASTER = 30


class FastClock(SystemClock):
    """The real clock, in a hurry: it is as much ahead of the server as it did not wait. Less than
    ten minutes in a test: who is further ahead is refused."""

    def __init__(self) -> None:
        self._skipped_seconds = 0.0

    def now(self) -> Micros:
        return Micros(super().now() + round(self._skipped_seconds * MICROS_PER_SECOND))

    def monotonic(self) -> float:
        return super().monotonic() * TIMES_FASTER

    def uptime(self) -> Uptime:
        machine, micros = super().uptime()
        return Uptime(machine, Micros(micros + round(self._skipped_seconds * MICROS_PER_SECOND)))

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds / TIMES_FASTER)

    def advance(self, seconds: float) -> None:
        waits = seconds / TIMES_FASTER
        self.sleep(seconds)
        self._skipped_seconds += seconds - waits


class FastQueue:
    """A queue whose messages come back sooner."""

    def __init__(self, queue: JobQueue) -> None:
        self._queue = queue

    def send(self, messages: Sequence[Message]) -> None:
        self._queue.send(messages)

    def receive(
        self, *, messages_max: int, hidden_seconds: float, wait_seconds: float = 0.0
    ) -> list[Received]:
        return self._queue.receive(
            messages_max=messages_max,
            hidden_seconds=hidden_seconds / TIMES_FASTER,
            wait_seconds=wait_seconds,
        )

    def delete(self, *receipts: str) -> None:
        self._queue.delete(*receipts)

    def extend(self, receipt: str, *, hidden_seconds: float) -> None:
        self._queue.extend(receipt, hidden_seconds=hidden_seconds / TIMES_FASTER)

    def give_up(self, message: Received) -> None:
        self._queue.give_up(message)

    def dead_letters(self, *, messages_max: int) -> list[Received]:
        return self._queue.dead_letters(messages_max=messages_max)

    def depth(self) -> tuple[int, int]:
        return self._queue.depth()


class FastQueues:
    """Such queues by name."""

    def __init__(self, queues: JobQueues) -> None:
        self._queues = queues

    def open(self, name: str) -> FastQueue:
        return FastQueue(self._queues.open(name))

    def names(self) -> list[str]:
        return self._queues.names()
