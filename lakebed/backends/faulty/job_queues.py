"""Queues whose messages are lost, doubled or late: they are hints, and this holds one to it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from lakebed.backends.faulty.crash_plan import CrashPlan
from lakebed.backends.faulty.faults import Fault, Faults
from lakebed.errors import UnavailableError, UnknownOutcomeError
from lakebed.ports.job_queue import JobQueue, JobQueues, Message, Received


class FaultyJobQueue:
    """A queue as one worker meets it. crashes: that worker's."""

    def __init__(self, queue: JobQueue, faults: Faults, crashes: CrashPlan | None = None) -> None:
        self._queue = queue
        self._faults = faults
        self._crashes = crashes or CrashPlan()

    def send(self, messages: Sequence[Message]) -> None:
        """Put messages in, perhaps."""
        self._crashes.check_alive()
        self._faults.pass_door()
        with self._crashes.effect("queue send"):
            fault = self._faults.choose(Fault.SEND_THROTTLED, Fault.SEND_UNANSWERED)
            if fault is Fault.SEND_THROTTLED:
                raise UnavailableError("send throttled")
            for message in messages:
                self._send(message)
            if fault is Fault.SEND_UNANSWERED:
                raise UnknownOutcomeError("no answer")

    def receive(
        self, *, messages_max: int, hidden_seconds: float, wait_seconds: float = 0.0
    ) -> list[Received]:
        """Take messages; sometimes none are found."""
        self._crashes.check_alive()
        self._faults.pass_door()
        if self._faults.choose(Fault.RECEIVE_EMPTY):
            return []
        return self._queue.receive(
            messages_max=messages_max, hidden_seconds=hidden_seconds, wait_seconds=wait_seconds
        )

    def delete(self, *receipts: str) -> None:
        """Remove messages, perhaps."""
        self._crashes.check_alive()
        self._faults.pass_door()
        with self._crashes.effect("queue delete"):
            if not self._faults.choose(Fault.MESSAGE_DELETE_LOST):
                self._queue.delete(*receipts)

    def extend(self, receipt: str, *, hidden_seconds: float) -> None:
        """Keep a message out of sight, perhaps."""
        self._crashes.check_alive()
        if not self._faults.choose(Fault.EXTEND_LOST):
            self._queue.extend(receipt, hidden_seconds=hidden_seconds)

    def give_up(self, message: Received) -> None:
        """Put a message in hand among the dead letters."""
        self._crashes.check_alive()
        self._faults.pass_door()
        with self._crashes.effect("queue give up"):
            self._queue.give_up(message)

    def dead_letters(self, *, messages_max: int) -> list[Received]:
        """Return messages that were given up."""
        self._crashes.check_alive()
        return self._queue.dead_letters(messages_max=messages_max)

    def depth(self) -> tuple[int, int]:
        """Return how many messages are waiting or in hand, and how many dead."""
        self._crashes.check_alive()
        return self._queue.depth()

    def _send(self, message: Message) -> None:
        match self._faults.choose(Fault.MESSAGE_LOST, Fault.MESSAGE_DOUBLED, Fault.MESSAGE_LATE):
            case Fault.MESSAGE_LOST:
                return
            case Fault.MESSAGE_LATE:
                self._faults.later(lambda: self._queue.send([message]))
            case Fault.MESSAGE_DOUBLED:
                self._queue.send([message, msgspec.structs.replace(message, once="")])
            case _:
                self._queue.send([message])


class FaultyJobQueues:
    """Queues by name as one worker meets them."""

    def __init__(self, queues: JobQueues, faults: Faults, crashes: CrashPlan | None = None) -> None:
        self._queues = queues
        self._faults = faults
        self._crashes = crashes or CrashPlan()

    def open(self, name: str) -> FaultyJobQueue:
        """Return the queue called `name`."""
        return FaultyJobQueue(self._queues.open(name), self._faults, self._crashes)

    def names(self) -> list[str]:
        """Return the names of queues that are known."""
        return self._queues.names()
