"""Lines of the ledger: what was used in an hour or a day, and cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from lakebed.costs.prices import Prices
from lakebed.costs.usage_amounts import amounts_of
from lakebed.ports.paying.usage_ledger import LedgerEntry


class UsageLine(NamedTuple):
    """The usage of one kind of work on one table in some hours that follow each other.

    table: its id.
    hour: the first one, since 1970.
    dollars: by prices.
    """

    table: str
    hour: int
    kind: str
    dollars: float
    counts: Mapping[str, float]

    def sum(self, counters: Sequence[str]) -> float:
        """Return the sum of some counters."""
        return sum(self.counts.get(name, 0.0) for name in counters)


def usage_lines(
    entries: Sequence[LedgerEntry], prices: Prices, *, hours: int, deleted_days: float
) -> Iterator[UsageLine]:
    """Yield lines of the ledger, the newest first.

    hours: that a line covers, 1 or 24: then it is a day, in UTC.
    deleted_days: for which S3 keeps a deleted object.
    """
    sums: dict[tuple[int, str, str], dict[str, float]] = {}
    for entry in entries:
        key = -(entry.hour // hours * hours), entry.table, entry.kind
        counts = sums.setdefault(key, {})
        for counter, amount in entry.counts.items():
            counts[counter] = counts.get(counter, 0.0) + amount
    for (hour, table, kind), counts in sorted(sums.items()):
        dollars = amounts_of(counts, deleted_days=deleted_days).dollars(prices)
        yield UsageLine(table, -hour, kind, dollars, counts)
