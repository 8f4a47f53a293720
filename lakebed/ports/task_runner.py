"""The door to what runs tasks: processes that work on one queue until it is empty."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from lakebed.model.names import Micros


class FailedTask(msgspec.Struct, frozen=True):
    """A task that did not end by itself, in order.

    started: whether its program ever ran.
    reason: the platform's words.
    ended_at: by the platform's clock.
    """

    started: bool
    reason: str
    ended_at: Micros


class TaskRunner(Protocol):
    """Runs tasks of one kind."""

    def running(self) -> int:
        """Return about how many were asked for and have not ended.

        Raises:
            UnavailableError: the platform is busy, or cannot be reached.
        """
        ...

    def start(self, once: str, *, spot: bool = False) -> None:
        """Ask for one task. A second call with the same `once`, within a day, asks for no other.

        spot: on capacity that costs less and that the platform may take back, two minutes after it
        told the task to stop; the same for each call with this `once`.

        Raises:
            UnavailableError: the platform refuses for now: no capacity, too many requests.
            UnknownOutcomeError: no answer; it may run. The same `once` asks for no other.
            InvalidError: it can never start like this: not permitted, no such task.
        """
        ...

    def failed_since(self, time: Micros) -> Sequence[FailedTask]:
        """Return tasks that failed at this time or later, as far as the platform remembers: an
        hour at the least.

        Raises:
            UnavailableError: the platform is busy, or cannot be reached.
        """
        ...
