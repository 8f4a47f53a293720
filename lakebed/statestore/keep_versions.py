"""Commit what keeps versions of a table."""

from __future__ import annotations

from lakebed.model.names import TransactionNumber
from lakebed.statestore.log_entries.transactions import Change
from lakebed.statestore.log_entries.version_changes import RaiseHorizon, expired
from lakebed.statestore.open_table import OpenTable, start_of
from lakebed.statestore.table_state.kept_versions import horizon_of, is_kept


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


def require_kept(table: OpenTable, number: TransactionNumber) -> None:
    """Refuse a version that gets no tag and no pin. The newest one gets both, also in a table of an
    older release.

    Raises:
        VersionExpiredError: it is not kept any more; the hint names the oldest one that is.
    """
    with table.head.reading() as state:
        if number != state.head().number and not is_kept(state, number):
            raise expired(state, number)
