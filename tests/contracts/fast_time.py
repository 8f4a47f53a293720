"""Time of a server that cannot be told what time it is: a test's minutes are seconds there."""

from __future__ import annotations

import time
from collections.abc import Sequence

from lakebed.model.names import Micros
from lakebed.ports.job_queue import JobQueue, JobQueues, Message, Received

TIMES_FASTER = 30


class FastClock:
    """The real clock, in a hurry."""

    def now(self) -> Micros:
        return Micros(time.time_ns() // 1_000)

    def advance(self, seconds: float) -> None:
        time.sleep(seconds / TIMES_FASTER)


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

    def delete(self, receipt: str) -> None:
        self._queue.delete(receipt)

    def extend(self, receipt: str, *, hidden_seconds: float) -> None:
        self._queue.extend(receipt, hidden_seconds=hidden_seconds / TIMES_FASTER)

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
