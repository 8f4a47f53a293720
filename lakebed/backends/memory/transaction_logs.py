"""Logs in memory. Safe with threads, so that races of real threads can be tested on them."""

from __future__ import annotations

import threading
from collections.abc import Iterator

from lakebed.errors import LogConflictError, LogRolledBackError, LogTruncatedError
from lakebed.model.names import EntryChecksum, Micros, TableId, TransactionNumber, entry_checksum
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
        """Return whether the log holds no entry."""
        return not self._bodies

    def append(
        self, number: TransactionNumber, body: bytes, after: EntryChecksum | None = None
    ) -> None:
        """Write entry `number` if it is free, behind the entry before it."""
        if number < 1:
            raise AssertionError(f"entries are numbered from 1, got {number}")
        with self._lock:
            if number < self._oldest or number in self._bodies:
                raise LogConflictError(number)
            self._check(TransactionNumber(number - 1), after)
            if self._bodies and next(reversed(self._bodies)) > number:  # it would close a gap
                raise LogRolledBackError(number - 1, log_ends=max(self._bodies))
            self._bodies[number] = bytes(body)

    def read_after(
        self, number: TransactionNumber, checksum: EntryChecksum | None = None
    ) -> Iterator[tuple[TransactionNumber, bytes]]:
        """Yield entries from `number + 1` on, up to the first gap."""
        wanted = TransactionNumber(number + 1)
        while True:
            with self._lock:
                if wanted < self._oldest:
                    raise LogTruncatedError(self._oldest)
                if wanted == number + 1:
                    self._check(number, checksum)
                body = self._bodies.get(wanted)
            if body is None:
                return
            yield wanted, body
            wanted = TransactionNumber(wanted + 1)

    def read_scattered(self, after: TransactionNumber) -> Iterator[tuple[TransactionNumber, bytes]]:
        """Yield every entry above a number."""
        with self._lock:
            found = sorted((n, body) for n, body in self._bodies.items() if n > after)
        yield from found

    def newest(self) -> TransactionNumber:
        """Return the greatest number that is taken."""
        with self._lock:
            return TransactionNumber(max(self._oldest - 1, max(self._bodies, default=0)))

    def truncate(self, below: TransactionNumber) -> None:
        """Forget bodies below; the newest stays, and no number becomes free."""
        with self._lock:
            oldest = min(below, max(self._bodies, default=TransactionNumber(1)))
            for number in [n for n in self._bodies if n < oldest]:
                del self._bodies[number]
            self._oldest = max(self._oldest, oldest)

    def resume(self, number: TransactionNumber, body: bytes, *, newest: TransactionNumber) -> None:
        """Begin the log anew with entry `number`."""
        if number <= newest:
            raise AssertionError(f"a log goes on behind {newest}, got {number}")
        with self._lock:
            if max(self._oldest - 1, max(self._bodies, default=0)) != newest:
                raise LogConflictError(number)
            self._bodies = {number: bytes(body)}
            self._oldest = number

    def store_time(self) -> Micros:
        """Return the clock of the store."""
        return self._clock.now()

    def _check(self, number: TransactionNumber, checksum: EntryChecksum | None) -> None:
        """Raise LogRolledBackError unless that entry is there."""
        if number < self._oldest:  # truncated, or 0
            return
        body = self._bodies.get(number)
        if body is None or (checksum is not None and entry_checksum(body) != checksum):
            raise LogRolledBackError(number, log_ends=max(self._bodies, default=0))


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
