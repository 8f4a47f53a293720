"""Queues in memory, with what SQS does: visibility, receive counts, dead letters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lakebed.model.names import MICROS_PER_SECOND, Micros
from lakebed.ports.clock import Clock
from lakebed.ports.job_queue import Received

RECEIVES_MAX = 5


@dataclass
class _Message:
    body: bytes
    visible_at: Micros
    receives: int = 0


class MemoryJobQueue:
    """A queue. receives_max: a message received more often is a dead letter."""

    def __init__(self, clock: Clock, *, receives_max: int = RECEIVES_MAX) -> None:
        self._clock = clock
        self._receives_max = receives_max
        self._messages: dict[int, _Message] = {}
        self._dead: dict[int, _Message] = {}
        self._last = 0

    def send(self, bodies: Sequence[bytes]) -> None:
        """Put messages in."""
        for body in bodies:
            self._last += 1
            self._messages[self._last] = _Message(bytes(body), self._clock.now())

    def receive(self, *, messages_max: int, hidden_seconds: float) -> list[Received]:
        """Take messages out of sight for so long, in the order they were sent."""
        now = self._clock.now()
        received: list[Received] = []
        for number, message in list(self._messages.items()):
            if len(received) >= messages_max:
                break
            if message.visible_at > now:
                continue
            if message.receives >= self._receives_max:
                self._dead[number] = self._messages.pop(number)
                continue
            message.receives += 1
            message.visible_at = _after(now, hidden_seconds)
            receipt = f"{number}/{message.receives}"
            received.append(Received(message.body, receipt, message.receives))
        return received

    def delete(self, receipt: str) -> None:
        """Remove a message or a dead letter for good."""
        if receipt.endswith("/dead"):
            self._dead.pop(int(receipt.removesuffix("/dead")), None)
        elif (number := self._in_hand(receipt)) is not None:
            del self._messages[number]

    def extend(self, receipt: str, *, hidden_seconds: float) -> None:
        """Keep a message out of sight for so long from now."""
        if (number := self._in_hand(receipt)) is not None:
            self._messages[number].visible_at = _after(self._clock.now(), hidden_seconds)

    def dead_letters(self, *, messages_max: int) -> list[Received]:
        """Return messages that were given up."""
        dead = list(self._dead.items())[:messages_max]
        return [Received(m.body, f"{number}/dead", m.receives) for number, m in dead]

    def depth(self) -> tuple[int, int]:
        """Return how many messages are waiting or in hand, and how many dead."""
        return len(self._messages), len(self._dead)

    def _in_hand(self, receipt: str) -> int | None:
        number, _, receives = receipt.partition("/")
        message = self._messages.get(int(number))
        if message is None or message.receives != int(receives):
            return None
        return int(number) if message.visible_at > self._clock.now() else None


class MemoryJobQueues:
    """Queues by name."""

    def __init__(self, clock: Clock, *, receives_max: int = RECEIVES_MAX) -> None:
        self._clock = clock
        self._receives_max = receives_max
        self._queues: dict[str, MemoryJobQueue] = {}

    def open(self, name: str) -> MemoryJobQueue:
        """Return the queue called `name`."""
        if name not in self._queues:
            self._queues[name] = MemoryJobQueue(self._clock, receives_max=self._receives_max)
        return self._queues[name]


def _after(now: Micros, seconds: float) -> Micros:
    return Micros(now + round(seconds * MICROS_PER_SECOND))
