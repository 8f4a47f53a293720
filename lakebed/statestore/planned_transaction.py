"""A transaction that holds only as long as the table is what it was planned on."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from lakebed.statestore.log_entries.transactions import Transaction

if TYPE_CHECKING:
    from lakebed.statestore.table_state.state import Moment, TableState

_REQUIRE = "require"


class PlannedTransaction(Transaction, frozen=True, array_like=True, dict=True):
    """A transaction with a further check, which is this process's own and is not stored.

    An entry is written behind the state that was checked, or not at all: so of two that were
    planned on one state, and exclude each other, the later is refused.
    """

    def check_and_apply(self, state: TableState, moment: Moment) -> None:
        """Check the plan, then as every transaction. Raises: what the plan's check raises, too."""
        require: Callable[[TableState], None] = vars(self)[_REQUIRE]
        require(state)
        super().check_and_apply(state, moment)


def planned(transaction: Transaction, require: Callable[[TableState], None]) -> Transaction:
    """Return the same transaction with a check. require: raises ConflictError for a state on which
    it was not planned."""
    parts = (getattr(transaction, name) for name in transaction.__struct_fields__)
    found = PlannedTransaction(*parts)
    vars(found)[_REQUIRE] = require
    return found
