"""Commit what keeps versions of a table."""

from __future__ import annotations

from lakebed.model.names import TransactionNumber
from lakebed.statestore.log_entries.transactions import Change
from lakebed.statestore.log_entries.version_changes import RaiseHorizon
from lakebed.statestore.open_table import OpenTable, start_of
from lakebed.statestore.table_state.kept_versions import horizon_of


def commit_kept(table: OpenTable, change: Change) -> TransactionNumber:
    """Commit a change that keeps versions. A table of an older release gets a horizon first.
    Returns the number of the entry.

    Raises:
        As `TableHead.commit`, and what the change's check says.
    """
    with table.head.reading() as state:
        state.require_table()
        start, is_new = start_of(state), horizon_of(state) is None
    begins = (RaiseHorizon(TransactionNumber(0)),) if is_new else ()
    return table.head.commit(table.own(start, *begins, change))
