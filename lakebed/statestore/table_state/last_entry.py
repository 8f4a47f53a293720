"""The checksum of the last entry that a state has applied.

It distinguishes the log that led to this state from another one of the same length: a log that was
cut, or restored to an earlier time, and has gone on without what this state knows. It is not
digested.
"""

from __future__ import annotations

from lakebed.model.names import EntryChecksum, TransactionNumber
from lakebed.statestore.table_state.state import TableState


def last_checksum(state: TableState) -> EntryChecksum | None:
    """Return it; None: not known. A Lakebed that does not know of it may have applied an entry."""
    return state.log_end().checksum


def known(state: TableState) -> tuple[TransactionNumber, EntryChecksum | None]:
    """Return the number and the checksum of the last entry, both of one version of the state."""
    number, checksum = state.connection.execute(
        "SELECT h.number, l.checksum FROM head h LEFT JOIN last_entry l ON l.number = h.number"
    ).fetchone()
    return TransactionNumber(number), None if checksum is None else EntryChecksum(checksum)


def remember_last(
    state: TableState, number: TransactionNumber, checksum: EntryChecksum | None
) -> None:
    """Write it down, in the SQLite transaction that applies entry `number`."""
    state.write("UPDATE last_entry SET number = ?, checksum = ?", (number, checksum))
