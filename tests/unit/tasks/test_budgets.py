"""A budget that is spent warns, and refuses users' work where it is to stop."""

import datetime
import logging
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import lakebed
from lakebed.backends.memory import MemoryUsageLedger, VirtualClock
from lakebed.config.settings import TableSettings
from lakebed.costs.month import KNOWN_SECONDS, MonthlyCosts, month_begin
from lakebed.costs.prices import packaged_prices
from lakebed.errors import InvalidError, UnavailableError
from lakebed.lake import Lake
from lakebed.model.names import MICROS_PER_SECOND, Micros, TableId
from lakebed.ports.paying.usage_ledger import LedgerEntry, hour_of
from lakebed.table import Table
from lakebed.tasks.budgets import check_budget, warn_of_budget

PRICES = packaged_prices()
DOLLAR = 1 / PRICES.prices["s3_put"]
"""As many puts cost one."""


class Spent:
    """Tells what it was told."""

    def __init__(self, dollars: float) -> None:
        self.dollars: float | None = dollars

    def spent(self, table: TableId) -> float:
        if self.dollars is None:
            raise UnavailableError("busy", table=table)
        return self.dollars

    def reading(self, size: int) -> float:
        return size / 1e9


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    with lakebed.connect(tmp_path / "lake") as lake:
        table = lake.create_table("trips", lakebed.schema_of(row_keys={"id": "int64"}))
        table.ingest(pa.table({"id": [1, 2]}))
        yield lake


@pytest.fixture
def table(lake: Lake) -> Table:
    return lake.table("trips")


def limited(dollars: int = 5, *, stops: bool = True) -> TableSettings:
    return TableSettings(budget_dollars=dollars, budget_stops=stops)


def test_what_would_pass_the_rest_is_refused_with_what_to_do(table: Table) -> None:
    check_budget(Spent(4.9), table._opened, limited(), reads=int(0.05e9))
    with pytest.raises(InvalidError, match="budget of this month has no more") as error:
        check_budget(Spent(4.9), table._opened, limited(), reads=int(0.2e9))
    facts = error.value.facts
    assert (facts["budget_dollars"], facts["spent"], facts["wanted"]) == (5, "4.90", "0.2")
    assert "raise budget_dollars" in str(error.value.hint)
    with pytest.raises(InvalidError):
        check_budget(Spent(5), table._opened, limited())


def test_nobody_is_refused_who_need_not_be(table: Table, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "lakebed")
    away = Spent(0)
    away.dollars = None
    check_budget(Spent(100), table._opened, limited(stops=False))
    check_budget(Spent(100), table._opened, limited(0))
    check_budget(None, table._opened, limited())
    assert caplog.text == ""
    check_budget(away, table._opened, limited())
    assert "budget_unknown" in caplog.text


def test_a_spent_budget_is_an_event_whether_it_stops_or_not(
    table: Table, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "lakebed")
    assert not warn_of_budget(Spent(4.99), table._opened, limited(stops=False))
    assert not warn_of_budget(Spent(100), table._opened, limited(0))
    assert not warn_of_budget(None, table._opened, limited())
    assert warn_of_budget(Spent(5.123), table._opened, limited(stops=False))
    (record,) = caplog.records
    assert record.getMessage() == ("budget_spent table=trips budget_dollars=5 spent_dollars=5.12")


def test_queries_scans_exports_and_imports_stop_and_compaction_goes_on(
    lake: Lake, table: Table, tmp_path: Path
) -> None:
    app = lake._given_app
    table.change_settings(budget_dollars=1, budget_stops=True)
    app.query._budgets = app.ingest._budgets = Spent(2)
    object.__setattr__(app, "paying", app.paying._replace(budgets=Spent(2)))
    for work in (
        lambda: table.query(keys=[1]),
        table.scan,
        lambda: table.dataset().to_table(),
        lambda: table.ingest(pa.table({"id": [3]})),
        lambda: table.export(tmp_path / "out"),
    ):
        with pytest.raises(InvalidError, match="budget of this month"):
            work()
    assert not (tmp_path / "out").exists()
    (refused,) = table.jobs(events=["rejected"])
    assert "budget of this month" in refused.reason
    table.compact()
    table.change_settings(budget_stops=False)
    assert table.query(keys=[1]).read_all().num_rows == 1


def at(text: str) -> Micros:
    return Micros(int(datetime.datetime.fromisoformat(text).timestamp()) * MICROS_PER_SECOND)


def test_a_month_begins_on_its_first_day_in_utc() -> None:
    begin = month_begin(at("2026-11-30T23:59:59+00:00"))
    assert begin == hour_of(at("2026-11-01T00:00:00+00:00"))
    assert month_begin(at("2026-12-01T00:30:00+01:00")) == begin
    assert month_begin(at("2026-12-01T00:00:00+00:00")) == begin + 30 * 24


def test_the_sum_of_the_month_is_that_of_the_ledger_and_known_for_a_while() -> None:
    clock, ledger = VirtualClock(), MemoryUsageLedger()
    costs = MonthlyCosts(ledger, clock=clock, prices=PRICES)
    table, hour = TableId("t"), hour_of(clock.now())

    def add(hour: int, dollars: float) -> None:
        counts = {"s3_put": dollars * DOLLAR}
        ledger.add(LedgerEntry(table=table, hour=hour, kind="ingest", counts=counts))

    add(hour, 3)
    add(month_begin(clock.now()) - 1, 100)
    assert costs.spent(table) == pytest.approx(3)
    add(hour, 4)
    assert costs.spent(table) == pytest.approx(3)
    clock.advance(KNOWN_SECONDS)
    assert costs.spent(table) == pytest.approx(7)
    clock.advance(31 * 86_400)
    assert costs.spent(table) == 0
    assert costs.reading(1) == PRICES.prices["s3_get"]
