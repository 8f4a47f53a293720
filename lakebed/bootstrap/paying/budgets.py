"""Budgets of tables, by the prices that come with Lakebed."""

from __future__ import annotations

from lakebed.costs.month import MonthlyCosts
from lakebed.costs.prices import packaged_prices
from lakebed.ports.clock import Clock
from lakebed.ports.paying.usage_ledger import UsageLedger
from lakebed.tasks.budgets import Budgets


def budgets_over(ledger: UsageLedger, clock: Clock) -> Budgets:
    """Return what was spent, as a ledger says."""
    return MonthlyCosts(ledger, clock=clock, prices=packaged_prices())
