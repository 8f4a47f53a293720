"""The door to the logs: one for each table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from lakebed.model.names import Micros, TableId, TransactionNumber


class TransactionLog(Protocol):
    """One table's log: entries numbered 1, 2, 3, ... without gaps, never changed once written.

    Every implementation passes `tests/contracts/test_transaction_log.py`.
    """

    def append(self, number: TransactionNumber, body: bytes) -> None:
        """Write `body` as entry `number`, only if that number is free. The caller has read `number
        - 1`.

        Raises:
            LogConflictError: the number is taken, perhaps by an earlier try of this very call, or
                was truncated: read before deciding.
            UnavailableError: this call wrote nothing; it may be sent again.
            InvalidError: the store refuses it for good, for want of a permission; the same.
            UnknownOutcomeError: no answer came; the write may have landed, or may land later.
        """
        ...

    def read_after(self, number: TransactionNumber) -> Iterator[tuple[TransactionNumber, bytes]]:
        """Yield entries `number + 1`, `number + 2`, ... up to the first gap. Strongly consistent.

        Raises:
            LogTruncatedError: bodies that far back are gone; start from a snapshot.
            UnavailableError: the store is busy; what was yielded is right.
        """
        ...

    def truncate(self, below: TransactionNumber) -> None:
        """Empty the bodies of entries with numbers below `below`. Their numbers stay taken.

        Safe to repeat. The newest entry keeps its body.
        """
        ...

    def store_time(self) -> Micros:
        """Return the store's own clock, at its last answer (HTTP `Date`)."""
        ...


class TransactionLogs(Protocol):
    """The logs of all tables of a lake."""

    def open(self, table: TableId) -> TransactionLog:
        """Return a table's log. A log that was never written reads as empty."""
        ...

    def tables(self) -> list[TableId]:
        """Return every table that has a log, tombstones too."""
        ...

    def remove(self, table: TableId) -> None:
        """Remove a log with all of its entries, for good: of a table that is dropped although its
        log cannot be read. Safe to repeat."""
        ...
