"""Marks of tables in memory."""

from __future__ import annotations

import threading

import msgspec

from lakebed.model.names import TableId, TransactionNumber
from lakebed.ports.table_marks import Failed, Handled, TableMark


class MemoryTableMarks:
    """Marks of tables."""

    def __init__(self) -> None:
        self._marks: dict[TableId, TableMark] = {}
        self._lock = threading.Lock()

    def changed(self, table: TableId, number: TransactionNumber) -> None:
        """Tell that a log has an entry."""
        with self._lock:
            mark = self._marks.get(table, TableMark())
            if number > mark.number:
                self._marks[table] = msgspec.structs.replace(mark, number=number)

    def handled(self, table: TableId, work: str, done: Handled) -> None:
        """Tell how far a kind of work is done."""
        with self._lock:
            mark = self._marks.get(table, TableMark())
            before = mark.handled.get(work)
            if before is None or done.number >= before.number:
                handled = {**mark.handled, work: done}
                failed = {other: failure for other, failure in mark.failed.items() if other != work}
                self._marks[table] = TableMark(mark.number, handled, failed)

    def failed(self, table: TableId, work: str, failed: Failed) -> None:
        """Tell that a kind of work failed."""
        with self._lock:
            mark = self._marks.get(table, TableMark())
            failures = {**mark.failed, work: failed}
            self._marks[table] = msgspec.structs.replace(mark, failed=failures)

    def list(self) -> dict[TableId, TableMark]:
        """Return all marks."""
        with self._lock:
            return dict(self._marks)
