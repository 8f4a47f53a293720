"""Estimates what an instance costs, from prices and measures: one record for the command and for
the page."""

from __future__ import annotations

import msgspec

from lakebed.config.instance import InstanceSettings
from lakebed.config.settings import TableSettings
from lakebed.costs.amounts import Amounts
from lakebed.costs.idle_costs import (
    changing_table,
    idle_parts,
    idle_table,
    paused_parts,
    working_metrics,
)
from lakebed.costs.measured import Measured
from lakebed.costs.prices import Prices
from lakebed.costs.work_costs import (
    GB,
    WorkScenario,
    bulk_imported_tb,
    compacted_tb,
    compaction_of,
    ingested_tb,
    million_lookups,
    replaced_files,
)

QUERY_GB = 2.0
"""Memory of the functions that answer queries."""
JOB_GIGABYTES = (1, 10, 100)
"""Sizes of ingest jobs for which a TB is reckoned."""


class TbCosts(msgspec.Struct, frozen=True, kw_only=True):
    """Dollars for a TB that comes in jobs of `job_gb` and is compacted to rest.

    rewritten: how often compaction writes a byte, in the mean.
    merges: its jobs.
    """

    job_gb: int
    ingest: float
    compaction: float
    replaced_files: float
    together: float
    rewritten: float
    merges: int


class CostEstimate(msgspec.Struct, frozen=True, kw_only=True):
    """Dollars.

    idle_month: of an idle instance, by part.
    paused_month: of a paused one, together.
    metrics_month: of an instance that works at all hours.
    feed_metrics_month: what feeds add to these.
    per_tb: one for each size of jobs.
    stored_gb_month: of a GB of files.
    """

    region: str
    prices_of: str
    idle_month: dict[str, float]
    paused_month: float
    idle_table_month: float
    changing_table_month: float
    metrics_month: float
    feed_metrics_month: float
    per_tb: list[TbCosts]
    bulk_import_per_tb: float
    per_million_lookups: float
    stored_gb_month: float


def estimate(
    prices: Prices,
    measured: Measured,
    *,
    instance: InstanceSettings | None = None,
    settings: TableSettings | None = None,
) -> CostEstimate:
    """Return what an instance with these settings costs. None: the default ones."""
    instance, settings = instance or InstanceSettings(), settings or TableSettings()
    scenarios = [
        WorkScenario(job_bytes=n * GB, deleted_days=instance.deleted_days, settings=settings)
        for n in JOB_GIGABYTES
    ]
    idle = {part: amounts.dollars(prices) for part, amounts in idle_parts().items()}
    return CostEstimate(
        region=prices.region,
        prices_of=prices.date.isoformat(),
        idle_month=idle,
        paused_month=sum(amounts.dollars(prices) for amounts in paused_parts().values()),
        idle_table_month=idle_table().dollars(prices),
        changing_table_month=changing_table(metrics=instance.table_metrics).dollars(prices),
        metrics_month=working_metrics(of_feeds=False).dollars(prices),
        feed_metrics_month=working_metrics(of_feeds=True).dollars(prices),
        per_tb=[_of_tb(prices, measured, scenario) for scenario in scenarios],
        bulk_import_per_tb=bulk_imported_tb(measured).dollars(prices),
        per_million_lookups=million_lookups(measured, memory_gb=QUERY_GB).dollars(prices),
        stored_gb_month=Amounts(s3_gb_month=1).dollars(prices),
    )


def _of_tb(prices: Prices, measured: Measured, scenario: WorkScenario) -> TbCosts:
    parts = [part(measured, scenario) for part in (ingested_tb, compacted_tb, replaced_files)]
    ingest, compaction, replaced = (amounts.dollars(prices) for amounts in parts)
    work = compaction_of(measured, scenario)
    return TbCosts(
        job_gb=scenario.job_bytes // GB,
        ingest=ingest,
        compaction=compaction,
        replaced_files=replaced,
        together=ingest + compaction + replaced,
        rewritten=work.rows_rewritten * measured.row_bytes / 1e12,
        merges=work.merges,
    )
