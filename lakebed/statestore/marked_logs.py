"""Logs that announce each entry by a mark, so that schedules find the tables that changed (H31)."""

from __future__ import annotations

from collections.abc import Iterator

from lakebed.errors import LakebedError
from lakebed.model.names import EntryChecksum, Micros, TableId, TransactionNumber
from lakebed.observe import events
from lakebed.ports.table_marks import TableMarks
from lakebed.ports.transaction_log import TransactionLog, TransactionLogs


class MarkedTransactionLog:
    """One table's log. What `append` says of the entry is not changed by a mark that fails."""

    def __init__(self, log: TransactionLog, table: TableId, marks: TableMarks) -> None:
        self._log = log
        self._table = table
        self._marks = marks

    def append(
        self, number: TransactionNumber, body: bytes, after: EntryChecksum | None = None
    ) -> None:
        """Write entry `number`, then mark the table."""
        self._log.append(number, body, after)
        self._mark(number)

    def resume(self, number: TransactionNumber, body: bytes, *, newest: TransactionNumber) -> None:
        """Begin the log anew, then mark the table."""
        self._log.resume(number, body, newest=newest)
        self._mark(number)

    def _mark(self, number: TransactionNumber) -> None:
        try:
            self._marks.changed(self._table, number)
        except LakebedError as error:  # a hint: the daily tick mends it
            events.emit(events.MARK_LOST, table=self._table, code=error.code())

    def read_after(
        self, number: TransactionNumber, checksum: EntryChecksum | None = None
    ) -> Iterator[tuple[TransactionNumber, bytes]]:
        """Yield entries from `number + 1` on."""
        return self._log.read_after(number, checksum)

    def read_scattered(self, after: TransactionNumber) -> Iterator[tuple[TransactionNumber, bytes]]:
        """Yield every entry above a number."""
        return self._log.read_scattered(after)

    def newest(self) -> TransactionNumber:
        """Return the greatest number that is taken."""
        return self._log.newest()

    def truncate(self, below: TransactionNumber) -> None:
        """Empty entries below."""
        self._log.truncate(below)

    def store_time(self) -> Micros:
        """Return the store's own clock."""
        return self._log.store_time()


class MarkedTransactionLogs:
    """The logs of all tables."""

    def __init__(self, logs: TransactionLogs, marks: TableMarks) -> None:
        self._logs = logs
        self._marks = marks

    def open(self, table: TableId) -> MarkedTransactionLog:
        """Return a table's log."""
        return MarkedTransactionLog(self._logs.open(table), table, self._marks)

    def tables(self) -> list[TableId]:
        """Return every table that has a log."""
        return self._logs.tables()

    def remove(self, table: TableId) -> None:
        """Remove a log."""
        self._logs.remove(table)
