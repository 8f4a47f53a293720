"""What a table costs a day, by what was measured or by what it cost before."""

import pytest

from lakebed.costs.daily import DailyLoad, own_costs, usual_costs
from lakebed.costs.estimate import estimate
from lakebed.costs.measured import packaged_measures
from lakebed.costs.prices import packaged_prices
from lakebed.costs.spent import CostReport, PerBillion
from lakebed.errors import InvalidError

FOUND = estimate(packaged_prices(), packaged_measures())
LOAD = DailyLoad(rows=2e9, row_bytes=50, queries=3e6)


def report(rows: PerBillion, queries: float | None = 4.0) -> CostReport:
    return CostReport(
        region="us-east-1",
        prices_of="2026-11-01",
        days=30,
        by="kind",
        dollars=9,
        lines=[],
        per_billion_rows=rows,
        write_amplification=None,
        per_million_queries=queries,
    )


OWN = PerBillion(taken_in=1.5, merged=7.0, read=9.0, merging_of_taken_in=2.5)


def test_measures_that_come_with_lakebed_give_the_costs_of_a_load() -> None:
    found = usual_costs(FOUND, LOAD)
    (of_tb,) = [one for one in FOUND.per_tb if one.job_gb == 10]
    assert found.taken_in + found.merged == pytest.approx(of_tb.together / 10)
    assert found.queries == pytest.approx(3 * FOUND.per_million_lookups)
    assert found.kept_month == pytest.approx(100 * 0.023)
    assert found.together == found.taken_in + found.merged + found.queries


def test_ratios_that_a_table_had_give_its_costs() -> None:
    found = own_costs(report(OWN), FOUND, LOAD)
    assert (found.taken_in, found.merged, found.queries) == (3, 5, 12)
    assert (found.kept_month, found.ratios) == (pytest.approx(2.3), "own")


def test_ratios_that_are_not_known_are_refused_unless_they_are_not_needed() -> None:
    none = PerBillion(taken_in=None, merged=None, read=None)
    for spent in (report(none), report(OWN, None)):
        with pytest.raises(InvalidError, match="in that time"):
            own_costs(spent, FOUND, LOAD)
    nothing = DailyLoad(rows=0, row_bytes=50, queries=0)
    assert own_costs(report(none, None), FOUND, nothing).together == 0
