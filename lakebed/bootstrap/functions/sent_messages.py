"""Messages of users that a function is handed: what becomes of those that it cannot do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lakebed.errors import NewerFormatError
from lakebed.ports.job_queue import JobQueue, Received, upgrade_wait_seconds

RETRY_SECONDS = 120.0
"""Seconds until a message that failed is tried again."""

Record = Mapping[str, Any]


class SentMessages:
    """Gives messages up, or back. received: what a record says."""

    def __init__(self, queue: JobQueue, *, received: Callable[[Record], Received]) -> None:
        self._queue = queue
        self._received = received

    def received(self, record: Record) -> Received:
        """Return a message that this function is handed."""
        return self._received(record)

    def refused(self, record: Record) -> None:
        """Put a message that can never work among the dead letters. Raises: as `give_up`."""
        self._queue.give_up(self._received(record))

    def failed(self, record: Record, error: Exception) -> None:
        """Let a message come back: soon, or when this installation may be upgraded. Raises:
        UnavailableError."""
        message, seconds = self._received(record), RETRY_SECONDS
        if isinstance(error, NewerFormatError):
            seconds = upgrade_wait_seconds(message.receives)
        self._queue.extend(message.receipt, hidden_seconds=seconds)
