"""Computes what the work on tables cost in this month, for budgets."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from typing import Final

from lakebed.costs.amounts import Amounts
from lakebed.costs.prices import Prices
from lakebed.costs.usage_amounts import amounts_of
from lakebed.model.names import MICROS_PER_SECOND, Micros, TableId
from lakebed.ports.clock import Clock
from lakebed.ports.paying.usage_ledger import UsageLedger, hour_of

KNOWN_SECONDS: Final = 600.0
"""Seconds that a sum is not read again: a month has thousands of entries."""
READ_BYTES: Final = 8 << 20
"""Bytes of one request for a part of a file that is read whole."""


class MonthlyCosts:
    """Sums by table, of a ledger, by prices. May be shared among threads."""

    def __init__(self, ledger: UsageLedger, *, clock: Clock, prices: Prices) -> None:
        self._ledger = ledger
        self._clock = clock
        self._prices = prices
        self._lock = threading.Lock()
        self._known: dict[TableId, tuple[int, float, float]] = {}

    def spent(self, table: TableId) -> float:
        """Return the dollars of this month so far, at most ten minutes old."""
        now = self._clock.now()
        begin, monotonic = month_begin(now), self._clock.monotonic()
        with self._lock:
            known = self._known.get(table)
        if known is not None and known[0] == begin and monotonic - known[1] < KNOWN_SECONDS:
            return known[2]
        entries = self._ledger.read(table, since=begin, until=hour_of(now) + 1)
        together = sum((amounts_of(entry.counts) for entry in entries), Amounts())
        dollars = together.dollars(self._prices)
        with self._lock:
            self._known[table] = begin, monotonic, dollars
        return dollars

    def reading(self, size: int) -> float:
        """Return the dollars of reading so many bytes of files."""
        return -(-size // READ_BYTES) * self._prices.prices["s3_get"]


def month_begin(now: Micros) -> int:
    """Return the hour in which the calendar month of a time begins, in UTC."""
    day = datetime.fromtimestamp(now // MICROS_PER_SECOND, UTC)
    first = day.replace(day=1, hour=0, minute=0, second=0)
    return hour_of(Micros(int(first.timestamp()) * MICROS_PER_SECOND))
