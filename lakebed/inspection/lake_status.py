"""Reports what the tables of a lake look like now, each on its own: one that fails harms no
other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from lakebed.errors import LakebedError
from lakebed.inspection.status import TableStatus, table_status
from lakebed.model.names import TableId
from lakebed.ports.job_tracker import JobTracker
from lakebed.ports.table_registry import TableEntry
from lakebed.statestore.open_table import OpenTable
from lakebed.statestore.snapshots import Snapshots
from lakebed.tasks.failed_work import FailedWork, explain


class LakeStatus:
    """Tells how tables are. Changes nothing.

    entries: returns those of one table, None: of all. opened: opens a table. snapshots: of a
    table. queue_loads: returns messages and dead letters of each queue.
    """

    def __init__(
        self,
        *,
        entries: Callable[[str | None], Sequence[TableEntry]],
        opened: Callable[[TableEntry], OpenTable],
        tracker: JobTracker,
        snapshots: Callable[[TableId], Snapshots],
        queue_loads: Callable[[], Mapping[str, tuple[int, int]]],
    ) -> None:
        self._entries = entries
        self._opened = opened
        self._tracker = tracker
        self._snapshots = snapshots
        self._queue_loads = queue_loads

    def run(self, name: str | None) -> tuple[list[TableStatus], list[FailedWork]]:
        """Return what a table, None: each, looks like now, and of which that cannot be told.

        Raises:
            TableMissingError: there is no such table.
        """
        found: list[TableStatus] = []
        failed, loads = list[FailedWork](), self._queue_loads()
        for entry in self._entries(name):
            try:
                status = table_status(
                    self._opened(entry),
                    tracker=self._tracker,
                    snapshots=self._snapshots(entry.id),
                    loads=loads,
                    online=entry.online,
                )
            except LakebedError as error:
                explain(error, table=entry.name, id_=entry.id)
                failed.append(FailedWork(table=entry.name, work="status", error=error))
            else:
                found.append(status)
        return found, failed
