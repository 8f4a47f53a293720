"""The door to queues. Messages are hints: they may be lost, doubled or late; truth is in the
state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import msgspec

from lakebed.errors import InvalidError
from lakebed.model.names import JobId, Micros, digest_of

BODY_BYTES_MAX = 180_000
"""Most bytes of a message. SQS takes 256 KiB of text: four characters for three bytes, and the
message's attributes."""
MESSAGES_AT_ONCE_MAX = 10
"""Most messages that one `receive` gives: as SQS."""
ONCE_SECONDS = 300
"""Seconds that a queue remembers what must be in it once: as SQS."""
LETTER_HIDDEN_SECONDS = 30.0
"""Seconds that a reader leases a dead letter: it is hidden from others, and the reader may delete
the letter."""


UPGRADE_WAIT_SECONDS = (60.0, 300.0, 900.0, 3_600.0, 14_400.0)
"""Seconds that a message waits that only a newer release can read, by receives. Together five
hours, in which the installation is to be upgraded; then the message is a dead letter."""


class Message(msgspec.Struct, frozen=True):
    """A message to send.

    body: at most BODY_BYTES_MAX bytes.
    message_group: its messages are handed out in the order they were sent, and none of them while
        an earlier one is in hand; "": a group of its own.
    once: of messages with the same text, sent within ONCE_SECONDS, only the first is taken; "":
        each is.
    sent_at: when it was first sent, if it is sent again after it was given up; 0: now.
    """

    body: bytes
    message_group: str = ""
    once: str = ""
    sent_at: Micros = Micros(0)


class Received(msgspec.Struct, frozen=True):
    """A message in hand.

    body: as it was sent.
    receipt: names this receipt of it.
    receives: how often it was received.
    message_group: as it was sent.
    sent_at: when it was sent, by its sender's clock.
    moved: the queue itself put it among the dead letters, and no longer knows when it was sent:
        `sent_at` is the time of that move.
    """

    body: bytes
    receipt: str
    receives: int
    message_group: str = ""
    sent_at: Micros = Micros(0)
    moved: bool = False


class QueueLoad(NamedTuple):
    """Estimates of how many messages can be received, or could if none of their group
    were in hand; and how many are in hand, or wait out of sight to come back."""

    waiting: int
    in_hand: int


def message_job(body: bytes, sent_at: Micros) -> JobId:
    """Return the id of a job whose sender gave it none: the same for each receipt of a message."""
    return JobId(f"message-{digest_of(body, b'%d' % sent_at).hex()}")


def upgrade_wait_seconds(receives: int) -> float:
    """Return how long a message that needs a newer release stays out of sight. receives: so far."""
    return UPGRADE_WAIT_SECONDS[min(max(receives, 1), len(UPGRADE_WAIT_SECONDS)) - 1]


class JobQueue(Protocol):
    """A queue. Every implementation passes `tests/contracts/test_job_queue.py`."""

    def send(self, messages: Sequence[Message]) -> None:
        """Put messages in.

        Raises:
            InvalidError: a body is larger than BODY_BYTES_MAX; none is in.
            UnavailableError, UnknownOutcomeError: some may be in: send all again.
        """
        ...

    def receive(
        self, *, messages_max: int, hidden_seconds: float, wait_seconds: float = 0.0
    ) -> list[Received]:
        """Take messages out of sight for so long. One received more often than the queue's
        `receives_max` goes to the dead letters instead. Never more than MESSAGES_AT_ONCE_MAX.

        wait_seconds: how long to wait for a first message; a queue may give up sooner.

        Raises:
            UnavailableError: the queue is busy; messages may be out of sight, and come back.
        """
        ...

    def delete(self, *receipts: str) -> None:
        """Remove messages for good. A receipt that has run out does nothing.

        Raises:
            UnavailableError: some may be left; they come back.
        """
        ...

    def extend(self, receipt: str, *, hidden_seconds: float) -> None:
        """Keep a message out of sight for so long from now. A receipt that has run out does
        nothing. A dead letter that was looked at is in sight at once with 0 seconds."""
        ...

    def give_up(self, message: Received) -> None:
        """Put a message in hand among the dead letters, now. One whose receipt has run out may be
        there and in the queue.

        Raises:
            UnavailableError, UnknownOutcomeError: it may be there, and in the queue, too.
        """
        ...

    def dead_letters(self, *, messages_max: int) -> list[Received]:
        """Return messages that were given up, oldest first, without removing them: `delete` does.
        They are hidden from other readers for LETTER_HIDDEN_SECONDS; then a receipt may have
        expired."""
        ...

    def depth(self) -> tuple[int, int]:
        """Return how many messages wait or are in hand, and how many are dead letters. About."""
        ...


class JobQueues(Protocol):
    """Queues by name."""

    def open(self, name: str) -> JobQueue:
        """Return the queue called `name`."""
        ...

    def names(self) -> list[str]:
        """Return the names of queues that are known to be there, sorted."""
        ...


def check_messages(messages: Sequence[Message]) -> None:
    """Raise InvalidError if one of them is too large for a queue."""
    for message in messages:
        if len(message.body) > BODY_BYTES_MAX:
            hint = f"send at most {BODY_BYTES_MAX} bytes, or the path of an object that holds more"
            raise InvalidError("a message is too large", bytes=len(message.body), hint=hint)
