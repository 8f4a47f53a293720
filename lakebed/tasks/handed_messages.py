"""Messages that a function was handed, as the queue that a worker takes them from."""

from __future__ import annotations

from collections.abc import Sequence

from lakebed.ports.job_queue import JobQueue, Message, Received


class HandedMessages:
    """A queue of messages that are in hand already. Who handed them out deletes what is done.

    queue: from which they came.
    """

    def __init__(self, queue: JobQueue) -> None:
        self._queue = queue
        self._waiting: list[Received] = []
        self._in_hand: set[str] = set()

    def hand(self, messages: Sequence[Received]) -> None:
        """Take the messages of a batch; what was left of the last one is forgotten."""
        self._waiting = list(messages)
        self._in_hand = {message.receipt for message in messages}

    def left(self) -> set[str]:
        """Return receipts of messages that were not deleted."""
        return set(self._in_hand)

    def send(self, messages: Sequence[Message]) -> None:
        """Send to the queue itself."""
        self._queue.send(messages)

    def receive(
        self, *, messages_max: int, hidden_seconds: float, wait_seconds: float = 0.0
    ) -> list[Received]:
        """Return messages that were not received yet. They are out of sight as long as the batch
        is."""
        some, self._waiting = self._waiting[:messages_max], self._waiting[messages_max:]
        return some

    def delete(self, *receipts: str) -> None:
        """Note that messages are done."""
        self._in_hand.difference_update(receipts)

    def extend(self, receipt: str, *, hidden_seconds: float) -> None:
        """Keep a message out of sight for so long from now."""
        self._queue.extend(receipt, hidden_seconds=hidden_seconds)

    def give_up(self, message: Received) -> None:
        """Put a message among the queue's dead letters, now."""
        self._queue.give_up(message)
        self.delete(message.receipt)

    def dead_letters(self, *, messages_max: int) -> list[Received]:
        """Return those of the queue."""
        return self._queue.dead_letters(messages_max=messages_max)

    def depth(self) -> tuple[int, int]:
        """Return those of the queue."""
        return self._queue.depth()
