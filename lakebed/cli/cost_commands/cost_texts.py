"""Costs, as people read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from lakebed.cli.program import aligned
from lakebed.costs.shown_counters import READ, REQUESTS, WRITTEN

if TYPE_CHECKING:
    from lakebed.costs.daily import DailyCosts, DailyLoad
    from lakebed.costs.estimate import CostEstimate
    from lakebed.costs.spent import Compared, CostReport

COLUMNS = {
    "rows in": ("rows_in",),
    "merged": ("rows_merged",),
    "read": ("rows_read",),
    "requests": REQUESTS,
    "MB written": WRITTEN,
    "MB read": READ,
    "seconds": ("life_seconds",),
}
_MEGA = {"MB written": 1e6, "MB read": 1e6}


def spent_text(found: CostReport) -> str:
    """Return a report of costs."""
    headings = (found.by, "dollars", *COLUMNS)
    counted = [
        (line.name, dollars_text(line.dollars), *(_sum(line.counts, name) for name in COLUMNS))
        for line in found.lines
    ]
    if found.by == "service":
        headings, counted = headings[:2], [line[:2] for line in counted]
    parts = [
        f"dollars, by prices of {found.region} of {found.prices_of}; `lakebed explain pay`",
        aligned(headings, counted, empty="nothing was counted yet"),
        f"together {dollars_text(found.dollars)}, in {found.days:g} days",
    ]
    parts += [f"note: {note}" for note in found.notes]
    return "\n\n".join([*parts[:2], "\n".join([parts[2], *_for_rows(found), *parts[3:]])])


def compared_text(found: CostReport, lines: Sequence[Compared]) -> str:
    """Return counted costs beside a bill."""
    cells = [
        (
            one.service,
            *(dollars_text(part) for part in (one.counted, one.billed, one.difference)),
        )
        for one in lines
    ]
    head = f"dollars, by prices of {found.region} of {found.prices_of}, and by Cost Explorer"
    notes = [f"note: {note}" for note in found.notes]
    table = aligned(("service", "counted", "billed", "difference"), cells, empty="nothing yet")
    return "\n\n".join([head, table, *notes])


def daily_text(cost: DailyCosts, load: DailyLoad, found: CostEstimate) -> str:
    """Return what a table costs a day."""
    whose = "its own ratios" if cost.ratios == "own" else "measures that come with Lakebed"
    lines = [
        (f"{load.rows:,.0f} rows taken in", dollars_text(cost.taken_in)),
        ("their merges", dollars_text(cost.merged)),
        (f"{load.queries:,.0f} queries", dollars_text(cost.queries)),
        ("together", dollars_text(cost.together)),
    ]
    gb = load.rows * load.row_bytes / 1e9
    kept = f"kept: {gb:,.1f} GB more each day, {dollars_text(cost.kept_month)} a month for each day"
    head = f"dollars a day, by prices of {found.region} of {found.prices_of}, and by {whose}"
    return "\n\n".join([head, aligned(("a day", ""), lines, empty=""), kept])


def dollars_text(dollars: float) -> str:
    """Return dollars, small ones with two digits that count."""
    if not dollars:
        return "0"
    return f"{dollars:,.2f}" if abs(dollars) >= 1 else f"{dollars:.2g}"


def _for_rows(found: CostReport) -> list[str]:
    each = found.per_billion_rows
    named = {"taken in": each.taken_in, "merged once": each.merged, "read": each.read}
    parts = [f"{dollars_text(cost)} {name}" for name, cost in named.items() if cost is not None]
    lines = [f"a billion rows: {', '.join(parts)}"] if parts else []
    if found.write_amplification is not None:
        lines.append(f"write amplification: {found.write_amplification:.2f}")
    return lines


def _sum(counts: Mapping[str, float], column: str) -> str:
    amount = sum(counts.get(name, 0.0) for name in COLUMNS[column]) / _MEGA.get(column, 1.0)
    return f"{amount:,.1f}" if column in _MEGA or column == "seconds" else f"{amount:,.0f}"
