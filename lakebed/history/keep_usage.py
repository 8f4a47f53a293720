"""Reads what work used in the hours of a day, as the ledger counted it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import date

import pyarrow as pa

from lakebed.history.job_table import DAY_SECONDS
from lakebed.history.keep_days import beginning_of
from lakebed.history.usage_table import usage_batches
from lakebed.ports.paying.usage_ledger import HOUR_SECONDS, LedgerEntry, UsageLedger, hour_of
from lakebed.ports.table_registry import TableEntry


class UsedHours:
    """The usage in the hours of each day, that of dropped tables among it.

    entries: returns the tables that have a name.
    """

    subject = "usage"

    def __init__(self, *, entries: Callable[[], Sequence[TableEntry]], ledger: UsageLedger) -> None:
        self._entries = entries
        self._ledger = ledger

    def of(self, day: date) -> Iterator[pa.RecordBatch]:
        """Yield the hours of a day that has settled: work is counted in the hour in which it is
        written down, so nothing is added to them any more."""
        yield from usage_batches(self._found(day))

    def _found(self, day: date) -> Iterator[tuple[str, LedgerEntry]]:
        since = hour_of(beginning_of(day))
        until = since + DAY_SECONDS // HOUR_SECONDS
        names = {str(entry.id): str(entry.name) for entry in self._entries()}
        for table in self._ledger.tables():
            entries = self._ledger.read(table, since=since, until=until)
            yield from ((names.get(table, table), entry) for entry in entries)
