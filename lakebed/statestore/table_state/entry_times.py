"""Finds when entries were written, as exactly as a state knows it: to a minute or so."""

from __future__ import annotations

from lakebed.model.names import Micros, TransactionNumber
from lakebed.statestore.table_state.state import TableState

_AT = (
    "SELECT coalesce("
    "(SELECT at FROM entry_times WHERE number <= ?1 ORDER BY number DESC LIMIT 1), "
    "(SELECT at FROM entry_times ORDER BY number LIMIT 1), ?2)"
)


def written_at(state: TableState, number: TransactionNumber) -> Micros:
    """Return about when an entry was written. For one that is older than all that is remembered:
    when the oldest of those was."""
    (at,) = state.connection.execute(_AT, (number, state.head().at)).fetchone()
    return Micros(at)
