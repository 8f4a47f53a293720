"""The queues of a process that was given none: it sends nothing, and nothing is sent to it."""

from __future__ import annotations

from collections.abc import Sequence

from lakebed.ports.job_queue import Message, Received, check_messages


class AbsentQueue:
    """A queue that loses each message, as any queue may lose one: messages are hints (protocol
    H20)."""

    def send(self, messages: Sequence[Message]) -> None:
        """Check messages and lose them. Raises: InvalidError, as every queue."""
        check_messages(messages)

    def receive(
        self, *, messages_max: int, hidden_seconds: float, wait_seconds: float = 0.0
    ) -> list[Received]:
        """Return no message. Never waits."""
        del messages_max, hidden_seconds, wait_seconds
        return []

    def delete(self, *receipts: str) -> None:
        """Do nothing: no message was received."""

    def extend(self, receipt: str, *, hidden_seconds: float) -> None:
        """Do nothing: no message was received."""

    def give_up(self, message: Received) -> None:
        """Do nothing: no message was received."""

    def dead_letters(self, *, messages_max: int) -> list[Received]:
        """Return no dead letter."""
        del messages_max
        return []

    def depth(self) -> tuple[int, int]:
        """Return that it holds nothing."""
        return 0, 0


class AbsentQueues:
    """Queues of a process that knows no URL of any."""

    def open(self, name: str) -> AbsentQueue:
        """Return the same absent queue for every name."""
        del name
        return AbsentQueue()

    def names(self) -> list[str]:
        """Return no name."""
        return []
