"""Budgets: what the work on a table may cost in a calendar month, and who is refused then."""

from __future__ import annotations

from typing import Protocol

from lakebed.config.settings import TableSettings
from lakebed.errors import InvalidError, LakebedError
from lakebed.model.names import TableId
from lakebed.observe import events
from lakebed.statestore.open_table import OpenTable


class Budgets(Protocol):
    """The cost of work in this month, and the cost of reading."""

    def spent(self, table: TableId) -> float:
        """Return the dollars that the work on a table cost in this month so far, some minutes ago.

        Raises:
            LakebedError: the ledger cannot be read.
        """
        ...

    def reading(self, size: int) -> float:
        """Return the dollars of reading so many bytes of files."""
        ...


def check_budget(
    budgets: Budgets | None, table: OpenTable, settings: TableSettings, *, reads: int = 0
) -> None:
    """Refuse work of users that a table's budget has nothing left for, where the budget stops it.
    reads: bytes of files that it reads. A ledger that cannot be read refuses nothing.

    Raises:
        InvalidError: with what was spent, and what this would cost.
    """
    budget = settings.budget_dollars
    if budgets is None or not stops_work(settings):
        return
    spent = _spent(budgets, table)
    wanted = budgets.reading(reads)
    if spent is None or spent + wanted < budget:
        return
    raise InvalidError(
        "the table's budget of this month has no more for this",
        table=table.name,
        budget_dollars=budget,
        spent=f"{spent:.2f}",
        wanted=f"{wanted:.2g}",
        hint="wait until the month is over, raise budget_dollars, or set budget_stops=false;"
        f" `lakebed cost {table.name}` shows what cost how much",
    )


def stops_work(settings: TableSettings) -> bool:
    """Return whether the table has a budget that stops work."""
    return bool(settings.budget_dollars) and settings.budget_stops


def warn_of_budget(budgets: Budgets | None, table: OpenTable, settings: TableSettings) -> bool:
    """Log that a table's budget of this month is spent. Returns whether it is."""
    budget = settings.budget_dollars
    spent = _spent(budgets, table) if budgets is not None and budget else None
    if spent is None or spent < budget:
        return False
    events.emit(
        events.BUDGET_SPENT,
        table=table.name,
        budget_dollars=budget,
        spent_dollars=round(spent, 2),
    )
    return True


def _spent(budgets: Budgets, table: OpenTable) -> float | None:
    """Return what was spent; None: it is not known now, and no work is stopped for that."""
    try:
        return budgets.spent(table.id)
    except LakebedError as error:
        events.emit(events.BUDGET_UNKNOWN, table=table.name, code=error.code())
        return None
