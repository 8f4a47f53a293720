"""Logs in memory. Safe with threads, so that races of real threads can be tested on them."""

from __future__ import annotations

import threading
from collections.abc import Iterator

from lakebed.errors import LogConflictError, LogTruncatedError
from lakebed.model.names import Micros, TableId, TransactionNumber
from lakebed.ports.clock import Clock


class MemoryTransactionLog:
    """One table's log. clock: the store's own."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._bodies: dict[TransactionNumber, bytes] = {}
        self._oldest = TransactionNumber(1)

    @property
    def is_empty(self) -> bool:
        """Whether nothing was ever written."""
        return not self._bodies

    def append(self, number: TransactionNumber, body: bytes) -> None:
        """Write entry `number` if it is free."""
        assert number >= 1, f"entries are numbered from 1, got {number}"
        with self._lock:
            if number < self._oldest or number in self._bodies:
                raise LogConflictError(number)
            self._bodies[number] = bytes(body)

    def read_after(self, number: TransactionNumber) -> Iterator[tuple[TransactionNumber, bytes]]:
        """Yield entries from `number + 1` on, up to the first gap."""
        wanted = TransactionNumber(number + 1)
        while True:
            with self._lock:
                if wanted < self._oldest:
                    raise LogTruncatedError(self._oldest)
                body = self._bodies.get(wanted)
            if body is None:
                return
            yield wanted, body
            wanted = TransactionNumber(wanted + 1)

    def truncate(self, below: TransactionNumber) -> None:
        """Forget bodies below; the newest stays, and no number becomes free."""
        with self._lock:
            oldest = min(below, max(self._bodies, default=TransactionNumber(1)))
            for number in [n for n in self._bodies if n < oldest]:
                del self._bodies[number]
            self._oldest = max(self._oldest, oldest)

    def store_time(self) -> Micros:
        """Return the clock of the store."""
        return self._clock.now()


class MemoryTransactionLogs:
    """The logs of all tables."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._logs: dict[TableId, MemoryTransactionLog] = {}

    def open(self, table: TableId) -> MemoryTransactionLog:
        """Return a table's log."""
        return self._logs.setdefault(table, MemoryTransactionLog(self._clock))

    def tables(self) -> list[TableId]:
        """Return every table whose log was written, in order."""
        return sorted(table for table, log in self._logs.items() if not log.is_empty)

    def remove(self, table: TableId) -> None:
        """Remove a log."""
        self._logs.pop(table, None)
