"""A ledger of usage in memory."""

from __future__ import annotations

from lakebed.observe.usage import NO_TABLE, Counts
from lakebed.ports.paying.usage_ledger import LedgerEntry


class MemoryUsageLedger:
    """Sums by table, hour and kind. Adding uses nothing that is counted."""

    def __init__(self) -> None:
        self._sums: dict[tuple[str, int, str], Counts] = {}

    @property
    def taken_by_add(self) -> Counts:
        """Return what one call of `add` uses itself: nothing."""
        return {}

    def add(self, entry: LedgerEntry) -> None:
        """Add counts."""
        sums = self._sums.setdefault((entry.table, entry.hour, entry.kind), {})
        for counter, amount in entry.counts.items():
            sums[counter] = sums.get(counter, 0.0) + amount

    def add_once(self, entry: LedgerEntry) -> bool:
        """Add counts where there are none."""
        if (entry.table, entry.hour, entry.kind) in self._sums:
            return False
        self.add(entry)
        return True

    def read(self, table: str, *, since: int, until: int) -> list[LedgerEntry]:
        """Return the sums of a table, by hour and kind."""
        return [
            LedgerEntry(table=table, hour=hour, kind=kind, counts=dict(counts))
            for (of, hour, kind), counts in sorted(self._sums.items(), key=lambda one: one[0])
            if of == table and since <= hour < until
        ]

    def tables(self) -> list[str]:
        """Return the tables that have entries."""
        return sorted({NO_TABLE, *(table for table, _, _ in self._sums)})
