"""Write down the state of a table where that is worth it, and empty its log (protocol H12, H13)."""

from __future__ import annotations

from collections.abc import Callable

from lakebed.model.names import TableId
from lakebed.observe import events
from lakebed.ports.transaction_log import TransactionLogs
from lakebed.statestore.open_table import OpenTable
from lakebed.statestore.snapshots import Snapshots


class WriteSnapshot:
    """Writes a snapshot of a table whose log has grown. Safe to kill anywhere, and to repeat."""

    def __init__(self, *, snapshots: Callable[[TableId], Snapshots], logs: TransactionLogs) -> None:
        self._snapshots = snapshots
        self._logs = logs

    def run(self, table: OpenTable) -> int:
        """Write one if it is due, and truncate the log. Returns how many were written."""
        snapshots, log = self._snapshots(table.id), self._logs.open(table.id)
        if not snapshots.is_due(log):
            return 0
        with table.head.reading() as state:
            number = snapshots.write(state)
        below = snapshots.truncate(log)
        events.emit(events.SNAPSHOT_WRITTEN, table=table.name, number=number, truncated_below=below)
        return 1
