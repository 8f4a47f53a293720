"""Files that wait for a table that was dropped are forgotten, and the tracker hears of it."""

from __future__ import annotations

from collections.abc import Callable

from lakebed.model.jobs import batch_job
from lakebed.model.names import TableId
from lakebed.observe import events
from lakebed.ports.clock import Clock
from lakebed.ports.file_batches import FileBatches
from lakebed.ports.job_tracker import NO_TABLE, JobTracker
from lakebed.statestore.head import TableHead
from lakebed.tasks.job_reports import JobReports

COUNTED_MAX = 10_000


class DropBatches:
    """Forgets batches of tables that are gone by their own logs. heads: by table."""

    def __init__(
        self,
        *,
        batches: FileBatches,
        heads: Callable[[TableId], TableHead],
        tracker: JobTracker,
        clock: Clock,
    ) -> None:
        self._batches = batches
        self._heads = heads
        self._reports = JobReports("ingest", tracker=tracker, clock=clock)

    def run(self, table: TableId) -> bool:
        """Look at a table that has something to do and no name. Returns whether it was forgotten.

        A list of names may miss one that is being renamed, so that the log decides.
        """
        if not self._is_gone(table):
            return False
        waiting = len(self._batches.pending(table, files_max=COUNTED_MAX))
        job = batch_job(table, self._batches.head(table).planned + 1)
        reason = f"table-missing: the table was dropped; {waiting} files waited for it"
        self._reports.report(NO_TABLE, job, "rejected", reason=reason)
        self._batches.drop(table)
        events.emit(events.BATCHES_DROPPED, id=table, files_count=waiting)
        return True

    def _is_gone(self, table: TableId) -> bool:
        with self._heads(table).reading() as state:
            head = state.head()
        return head.dropped or not head.number
