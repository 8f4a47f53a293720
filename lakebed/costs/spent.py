"""Computes what was spent: counted usage, times prices, by table, kind of work, day or service."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal, get_args

import msgspec

from lakebed.costs.amounts import DAYS_OF_MONTH, Amounts
from lakebed.costs.idle_costs import standing_parts
from lakebed.costs.prices import Prices
from lakebed.costs.usage_amounts import SERVICES, amounts_of
from lakebed.observe.usage import NO_TABLE, Counts
from lakebed.ports.paying.usage_ledger import HOUR_SECONDS, LedgerEntry

By = Literal["table", "kind", "day", "service"]
WAYS: Final[Sequence[By]] = get_args(By)
HOURS_OF_DAY: Final = 24
STANDING: Final = "standing"
"""The kind of what is paid for whether there is work or not: it is reckoned, not counted."""
NO_PRICES_OLDER_THAN: Final = datetime.timedelta(days=365)

TAKING_IN: Final = frozenset({"ingest", "commits", "bulk-import", "feeds"})
MERGING: Final = frozenset({"compaction", "compaction-creation"})
READING: Final = frozenset({"query", "export"})
QUERYING: Final = frozenset({"query"})
_PUT: Final = ("s3_put_bytes", "local_put_bytes")


class SpentLine(msgspec.Struct, frozen=True, kw_only=True):
    """The cost of one table, kind of work, day or service.

    dollars: by the prices.
    counts: by counter; empty for a service.
    """

    name: str
    dollars: float
    counts: dict[str, float] = {}


class PerBillion(msgspec.Struct, frozen=True, kw_only=True):
    """Dollars for a billion rows; None: there were none.

    taken_in: with their commits.
    merged: once.
    read: by queries and exports.
    merging_of_taken_in: all merges, for each billion rows that was taken in.
    """

    taken_in: float | None
    merged: float | None
    read: float | None
    merging_of_taken_in: float | None = None


class CostReport(msgspec.Struct, frozen=True, kw_only=True):
    """A report of the costs of some days.

    days: that the entries cover.
    lines: the dearest first; days in their order.
    per_million_queries: dollars; None: there were none.
    write_amplification: bytes that merges wrote, for each byte that was taken in; None: none was.
    notes: what to know of the prices.
    """

    region: str
    prices_of: str
    days: float
    by: By
    dollars: float
    lines: list[SpentLine]
    per_billion_rows: PerBillion
    write_amplification: float | None
    per_million_queries: float | None = None
    notes: list[str] = []


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """The counted and the billed cost of a service, in dollars."""

    service: str
    counted: float
    billed: float

    @property
    def difference(self) -> float:
        """Return how much more was billed than counted, in dollars; negative: less."""
        return self.billed - self.counted


def compared(found: CostReport, billed: Mapping[str, float]) -> list[Compared]:
    """Return a report by service beside a bill, the dearest first."""
    counted = {line.name: line.dollars for line in found.lines}
    return [
        Compared(service=name, counted=counted.get(name, 0.0), billed=billed.get(name, 0.0))
        for name in sorted(
            {*counted, *billed},
            key=lambda n: (-max(counted.get(n, 0.0), billed.get(n, 0.0)), n),
        )
    ]


class AskedCosts(msgspec.Struct, frozen=True, kw_only=True):
    """The options by which costs are shown.

    names: of tables, by their ids.
    now: the day.
    region: where the instance is; "": nowhere, it is a directory.
    deleted_days: for which S3 keeps a deleted object as an old version.
    standing: whether what the instance costs while it is idle is added.
    """

    by: By
    names: Mapping[str, str]
    now: datetime.date
    region: str = ""
    deleted_days: float = 0.0
    standing: bool = False


class _Part(msgspec.Struct, frozen=True, kw_only=True):
    table: str
    kind: str
    hour: int
    amounts: Amounts
    counts: Counts = {}


def spent(entries: Sequence[LedgerEntry], prices: Prices, asked: AskedCosts) -> CostReport:
    """Return what entries of the ledger cost."""
    parts = [
        _Part(
            table=entry.table,
            kind=entry.kind,
            hour=entry.hour,
            amounts=amounts_of(entry.counts, deleted_days=asked.deleted_days),
            counts=entry.counts,
        )
        for entry in entries
    ]
    days = sorted({part.hour // HOURS_OF_DAY for part in parts})
    covered = range(days[0], days[-1] + 1) if days else range(0)
    if asked.standing:
        parts += _standing(covered)
    lines = list(_lines(parts, prices, asked))
    return CostReport(
        region=prices.region,
        prices_of=prices.date.isoformat(),
        days=len(covered),
        by=asked.by,
        dollars=sum(part.amounts.dollars(prices) for part in parts),
        lines=lines,
        per_billion_rows=_per_billion(parts, prices),
        write_amplification=_amplification(parts),
        per_million_queries=_for_each(parts, prices, QUERYING, "queries", times=1e6),
        notes=notes_on(prices, region=asked.region, now=asked.now),
    )


def notes_on(prices: Prices, *, region: str, now: datetime.date) -> list[str]:
    """Return what to know of prices: they are old, or of another region."""
    notes = []
    if now - prices.date > NO_PRICES_OLDER_THAN:
        notes.append(f"the prices are of {prices.date}, more than a year ago: look them up anew")
    if region and region != prices.region:
        notes.append(f"the prices are of {prices.region}, and the instance is in {region}")
    return notes


def _standing(days: range) -> Iterator[_Part]:
    of_day = sum(standing_parts().values(), Amounts()) * (1 / DAYS_OF_MONTH)
    for day in days:
        yield _Part(table=NO_TABLE, kind=STANDING, hour=day * HOURS_OF_DAY, amounts=of_day)


def _lines(parts: Sequence[_Part], prices: Prices, asked: AskedCosts) -> Iterator[SpentLine]:
    if asked.by == "service":
        yield from _services(parts, prices)
        return
    dollars: dict[str, float] = {}
    counts: dict[str, Counts] = {}
    for part in parts:
        name = _name(part, asked)
        dollars[name] = dollars.get(name, 0.0) + part.amounts.dollars(prices)
        of_name = counts.setdefault(name, {})
        for counter, amount in part.counts.items():
            of_name[counter] = of_name.get(counter, 0.0) + amount
    is_timed = asked.by == "day"
    for name in sorted(dollars, key=lambda n: (0.0 if is_timed else -dollars[n], n)):
        yield SpentLine(name=name, dollars=dollars[name], counts=counts[name])


def _services(parts: Sequence[_Part], prices: Prices) -> Iterator[SpentLine]:
    together = sum((part.amounts for part in parts), Amounts())
    dollars: dict[str, float] = {}
    for thing, service in SERVICES.items():
        cost = getattr(together, thing) * prices.prices[thing]
        dollars[service] = dollars.get(service, 0.0) + cost
    for service in sorted(dollars, key=lambda n: (-dollars[n], n)):
        if dollars[service]:
            yield SpentLine(name=service, dollars=dollars[service])


def _name(part: _Part, asked: AskedCosts) -> str:
    if asked.by == "kind":
        return part.kind
    if asked.by == "day":
        seconds = part.hour * HOUR_SECONDS
        return datetime.datetime.fromtimestamp(seconds, datetime.UTC).date().isoformat()
    return asked.names.get(part.table, part.table)


def _per_billion(parts: Sequence[_Part], prices: Prices) -> PerBillion:
    return PerBillion(
        taken_in=_for_each(parts, prices, TAKING_IN, "rows_in"),
        merged=_for_each(parts, prices, MERGING, "rows_merged"),
        read=_for_each(parts, prices, READING, "rows_read"),
        merging_of_taken_in=_for_each(parts, prices, MERGING, "rows_in", of=TAKING_IN),
    )


def _for_each(
    parts: Sequence[_Part],
    prices: Prices,
    kinds: frozenset[str],
    counter: str,
    *,
    of: frozenset[str] | None = None,
    times: float = 1e9,
) -> float | None:
    """Return what work of some kinds cost for so many of what is counted, by work of these kinds or
    of others; None: there were none."""
    counted = [part for part in parts if part.kind in (of or kinds)]
    count = sum(part.counts.get(counter, 0.0) for part in counted)
    cost = sum(part.amounts.dollars(prices) for part in parts if part.kind in kinds)
    return cost / count * times if count else None


def _amplification(parts: Sequence[_Part]) -> float | None:
    def written(kinds: frozenset[str]) -> float:
        of_kinds = (part.counts for part in parts if part.kind in kinds)
        return sum(counts.get(name, 0.0) for counts in of_kinds for name in _PUT)

    taken_in = written(TAKING_IN)
    return written(MERGING) / taken_in if taken_in else None
