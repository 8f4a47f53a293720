"""Queues in memory, with what SQS does: visibility, receive counts, dead letters, groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lakebed.model.names import MICROS_PER_SECOND, Micros
from lakebed.ports.clock import Clock
from lakebed.ports.job_queue import (
    MESSAGES_AT_ONCE_MAX,
    ONCE_SECONDS,
    Message,
    Received,
    check_messages,
)

RECEIVES_MAX = 5


@dataclass
class _Message:
    body: bytes
    message_group: str
    sent_at: Micros
    visible_at: Micros
    receives: int = 0

    def received(self, receipt: str) -> Received:
        return Received(self.body, receipt, self.receives, self.message_group, self.sent_at)


class MemoryJobQueue:
    """A queue. receives_max: a message received more often is a dead letter."""

    def __init__(self, clock: Clock, *, receives_max: int = RECEIVES_MAX) -> None:
        self._clock = clock
        self._receives_max = receives_max
        self._messages: dict[int, _Message] = {}
        self._dead: dict[int, _Message] = {}
        self._hidden: dict[int, _Message] = {}
        """Of the messages those that were in hand just now, and perhaps are still."""
        self._once: dict[str, Micros] = {}
        self._last = 0

    def send(self, messages: Sequence[Message]) -> None:
        """Put messages in."""
        check_messages(messages)
        now = self._clock.now()
        self._once = {text: at for text, at in self._once.items() if now < _after(at, ONCE_SECONDS)}
        for message in messages:
            if message.once in self._once:
                continue
            if message.once:
                self._once[message.once] = now
            self._last += 1
            sent_at = message.sent_at or now
            stored = _Message(bytes(message.body), message.message_group, sent_at, now)
            self._messages[self._last] = stored

    def receive(
        self, *, messages_max: int, hidden_seconds: float, wait_seconds: float = 0.0
    ) -> list[Received]:
        """Take messages out of sight for so long, in the order they were sent. Never waits."""
        now = self._clock.now()
        received: list[Received] = []
        dead: list[int] = []
        self._hidden = {n: m for n, m in self._hidden.items() if m.visible_at > now}
        held = {m.message_group for m in self._hidden.values() if m.message_group}
        for number, message in self._messages.items():
            if len(received) >= min(messages_max, MESSAGES_AT_ONCE_MAX):
                break
            if message.visible_at > now or message.message_group in held:
                continue
            if message.receives >= self._receives_max:
                dead.append(number)
                continue
            message.receives += 1
            message.visible_at = _after(now, hidden_seconds)
            self._hidden[number] = message
            received.append(message.received(f"{number}/{message.receives}"))
        for number in dead:
            self._dead[number] = self._messages.pop(number)
        return received

    def delete(self, *receipts: str) -> None:
        """Remove messages or dead letters for good."""
        for receipt in receipts:
            if receipt.endswith("/dead"):
                self._dead.pop(int(receipt.removesuffix("/dead")), None)
            elif (number := self._in_hand(receipt)) is not None:
                del self._messages[number]
                self._hidden.pop(number, None)

    def extend(self, receipt: str, *, hidden_seconds: float) -> None:
        """Keep a message out of sight for so long from now."""
        if (number := self._in_hand(receipt)) is not None:
            self._messages[number].visible_at = _after(self._clock.now(), hidden_seconds)

    def give_up(self, message: Received) -> None:
        """Put a message in hand among the dead letters."""
        if (number := self._in_hand(message.receipt)) is not None:
            self._dead[number] = self._messages.pop(number)
            self._hidden.pop(number, None)

    def dead_letters(self, *, messages_max: int) -> list[Received]:
        """Return messages that were given up."""
        dead = list(self._dead.items())[:messages_max]
        return [m.received(f"{number}/dead") for number, m in dead]

    def depth(self) -> tuple[int, int]:
        """Return how many messages are waiting or in hand, and how many dead."""
        return len(self._messages), len(self._dead)

    def _in_hand(self, receipt: str) -> int | None:
        number, _, receives = receipt.partition("/")
        if receives == "dead":
            return None
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

    def names(self) -> list[str]:
        """Return the names of queues that were opened."""
        return sorted(self._queues)


def _after(now: Micros, seconds: float) -> Micros:
    return Micros(now + round(seconds * MICROS_PER_SECOND))
