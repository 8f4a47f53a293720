"""The door to the logs: one for each table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from lakebed.model.names import EntryChecksum, Micros, TableId, TransactionNumber


class TransactionLog(Protocol):
    """One table's log: entries numbered 1, 2, 3, ... without gaps, never changed once written.

    Every implementation passes `tests/contracts/test_transaction_log.py`.
    """

    def append(
        self, number: TransactionNumber, body: bytes, after: EntryChecksum | None = None
    ) -> None:
        """Write `body` as entry `number`, only if that number is free, entry `number - 1` is there,
        and no later one is: a gap is not closed (H33).

        after: checksum of entry `number - 1` as the caller has applied it; None: it is not known,
        and any entry there will do. An entry that was truncated passes.

        Raises:
            LogConflictError: the number is taken, perhaps by an earlier try of this very call, or
                was truncated: read before deciding.
            LogRolledBackError: entry `number - 1` is not there, is another, or was followed by an
                entry that is gone; nothing was written.
            UnavailableError: this call wrote nothing; it may be sent again.
            InvalidError: the store refuses it for good, for want of a permission; the same.
            UnknownOutcomeError: no answer came; the write may have landed, or may land later.
        """
        ...

    def read_after(
        self, number: TransactionNumber, checksum: EntryChecksum | None = None
    ) -> Iterator[tuple[TransactionNumber, bytes]]:
        """Yield entries `number + 1`, `number + 2`, ... up to the first gap (H9).
        Strongly consistent.

        checksum: of entry `number` as the caller has applied it; None: it is not known.

        Raises:
            LogTruncatedError: bodies that far back are gone; start from a snapshot.
            LogRolledBackError: entry `number` is not there, or is another (H34).
            UnavailableError: the store is busy; what was yielded is right.
        """
        ...

    def read_scattered(self, after: TransactionNumber) -> Iterator[tuple[TransactionNumber, bytes]]:
        """Yield every entry above a number that has a body, gaps or not. For inspection: what lies
        behind a gap is not part of the log."""
        ...

    def newest(self) -> TransactionNumber:
        """Return the greatest number that is known to be taken, gaps or not; 0: none is."""
        ...

    def truncate(self, below: TransactionNumber) -> None:
        """Empty the bodies of entries with numbers below `below`. Their numbers stay taken (H10).

        Safe to repeat. The newest entry keeps its body.
        """
        ...

    def resume(self, number: TransactionNumber, body: bytes, *, newest: TransactionNumber) -> None:
        """Write `body` as entry `number` and take every other entry away, all or nothing: a repair,
        after a snapshot of the state at `number - 1` was proven. All lower numbers stay taken.

        newest: the greatest number that is taken, as the repair has seen it; below `number`.

        Raises:
            LogConflictError: another process wrote meanwhile; nothing was changed.
            InvalidError: this log cannot do so; nothing was changed.
            UnavailableError: nothing was changed; it may be sent again.
            UnknownOutcomeError: it may have happened; look before it is sent again.
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
