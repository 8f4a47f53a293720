"""The door to queues. Messages are hints: they may be lost, doubled or late; truth is in the
state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec


class Received(msgspec.Struct, frozen=True):
    """A message in hand. receipt: names this receipt of it. receives: how often it was received."""

    body: bytes
    receipt: str
    receives: int


class JobQueue(Protocol):
    """A queue. Every implementation passes `tests/contracts/test_job_queue.py`."""

    def send(self, bodies: Sequence[bytes]) -> None:
        """Put messages in.

        Raises:
            UnavailableError, UnknownOutcomeError: some may be in: send all again.
        """
        ...

    def receive(self, *, messages_max: int, hidden_seconds: float) -> list[Received]:
        """Take messages out of sight for so long. One received more often than the queue's
        `receives_max` goes to the dead letters instead."""
        ...

    def delete(self, receipt: str) -> None:
        """Remove a message for good. A receipt that has run out does nothing."""
        ...

    def extend(self, receipt: str, *, hidden_seconds: float) -> None:
        """Keep a message out of sight for so long from now. A receipt that has run out does
        nothing."""
        ...

    def dead_letters(self, *, messages_max: int) -> list[Received]:
        """Return messages that were given up, without removing them: `delete` does."""
        ...

    def depth(self) -> tuple[int, int]:
        """Return how many messages wait or are in hand, and how many are dead letters."""
        ...


class JobQueues(Protocol):
    """Queues by name."""

    def open(self, name: str) -> JobQueue:
        """Return the queue called `name`."""
        ...
