"""The end of a dropped table's log."""

from __future__ import annotations

from lakebed.model.names import TransactionNumber, entry_checksum
from lakebed.ports.transaction_log import TransactionLog
from lakebed.statestore.log_entries.codec import decode_entry
from lakebed.statestore.log_entries.table_changes import DropTable
from lakebed.statestore.log_entries.transactions import finish_entry
from lakebed.statestore.table_state.state import Moment, TableState


def take_tombstone(log: TransactionLog, state: TableState, after: TransactionNumber) -> bool:
    """Take the state of a dropped table from its log's last entry, which says all there is to know
    (H10): no snapshot of it is kept. Returns False where the table was not dropped."""
    last: tuple[int, bytes] | None = None
    for last in log.read_after(after):  # noqa: B007 - the last one is wanted
        pass
    if last is None:
        return False
    number, entry = last[0], decode_entry(last[1], last[0])
    if not any(isinstance(c, DropTable) for t in entry.transactions for c in t.changes):
        return False
    with state.writing():
        if state.head().number < number:  # else another process was faster
            moment = Moment(TransactionNumber(number), entry.at)
            for transaction in entry.transactions:
                transaction.apply(state, moment)
            finish_entry(state, moment, entry_checksum(last[1]))
    return True
