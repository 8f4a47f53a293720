"""Computes the daily cost of a table from how many rows and queries it gets a day."""

from __future__ import annotations

import msgspec

from lakebed.costs.estimate import CostEstimate
from lakebed.costs.spent import CostReport
from lakebed.errors import InvalidError

BILLION, MILLION, TB, GB = 1e9, 1e6, 1e12, 1e9
JOB_GB = 10
"""Size in GB of the jobs that rows come in, where nothing is known of them."""


class DailyLoad(msgspec.Struct, frozen=True, kw_only=True):
    """The load of a table in a day.

    rows: taken in.
    row_bytes: of a row in files.
    queries: of one key each, where nothing else is known of them.
    """

    rows: float
    row_bytes: float
    queries: float


class DailyCosts(msgspec.Struct, frozen=True, kw_only=True):
    """Dollars a day.

    kept_month: of a day's rows, for each month in which they are kept.
    ratios: whose they are: `packaged`, or `own`.
    """

    taken_in: float
    merged: float
    queries: float
    kept_month: float
    ratios: str

    @property
    def together(self) -> float:
        """Return the dollars that a day costs, without what is kept of it."""
        return self.taken_in + self.merged + self.queries


def usual_costs(found: CostEstimate, load: DailyLoad) -> DailyCosts:
    """Return the costs of a load by what comes with Lakebed: measures, and the planner's count."""
    tb = load.rows * load.row_bytes / TB
    (of_tb,) = [one for one in found.per_tb if one.job_gb == JOB_GB]
    return DailyCosts(
        taken_in=of_tb.ingest * tb,
        merged=(of_tb.compaction + of_tb.replaced_files) * tb,
        queries=found.per_million_lookups * load.queries / MILLION,
        kept_month=found.stored_gb_month * tb * TB / GB,
        ratios="packaged",
    )


def own_costs(spent: CostReport, found: CostEstimate, load: DailyLoad) -> DailyCosts:
    """Return the costs of a load by the ratios that an instance, or a table of it, had.

    Raises:
        InvalidError: it has taken no rows in, or answered no queries, though the load has some.
    """
    each = spent.per_billion_rows
    return DailyCosts(
        taken_in=_ratio(each.taken_in, load.rows, "rows were taken in") / BILLION,
        merged=_ratio(each.merging_of_taken_in, load.rows, "rows were taken in") / BILLION,
        queries=_ratio(spent.per_million_queries, load.queries, "queries were counted") / MILLION,
        kept_month=found.stored_gb_month * load.rows * load.row_bytes / GB,
        ratios="own",
    )


def _ratio(dollars: float | None, amount: float, what: str) -> float:
    if not amount:
        return 0.0
    if dollars is None:
        hint = "leave --own out: the measures that come with Lakebed are taken then"
        raise InvalidError(f"no {what} in that time", hint=hint)
    return dollars * amount
