"""Messages of users that a function is handed: what becomes of those that it cannot do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lakebed.ports.job_queue import JobQueue, Received

RETRY_SECONDS = 120.0
"""After which a message that failed is tried again."""

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

    def failed(self, record: Record) -> None:
        """Let a message come back soon. Raises: UnavailableError."""
        self._queue.extend(self._received(record).receipt, hidden_seconds=RETRY_SECONDS)
