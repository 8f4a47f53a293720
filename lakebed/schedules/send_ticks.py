"""Tell a queue which tables may have something to do: one message for each, at most once a tick."""

from __future__ import annotations

from collections.abc import Sequence

from lakebed.model.jobs import BATCHING, TableMessage, encode_table_message
from lakebed.model.names import TableId
from lakebed.observe import events
from lakebed.ports.clock import Clock
from lakebed.ports.file_batches import FileBatches
from lakebed.ports.job_queue import JobQueue, Message
from lakebed.ports.table_marks import TableMark, TableMarks
from lakebed.ports.table_registry import TableRegistry

SENT_AT_ONCE = 1_000


class SendTicks:
    """Asks for one kind of work on the tables that need it. Offline and idle ones are passed over.

    Opens no table: a mark says whether it changed since the work was done last. work: the kind.
    """

    def __init__(
        self,
        work: str,
        *,
        registry: TableRegistry,
        marks: TableMarks,
        queue: JobQueue,
        clock: Clock,
    ) -> None:
        self._work = work
        self._registry = registry
        self._marks = marks
        self._queue = queue
        self._clock = clock

    def run(self, *, at: str) -> int:
        """Send what is due. Returns how many messages.

        at: the time for which the schedule went off, as it tells it: a second call with the same
        sends nothing new (protocol H31).
        """
        online = [entry.id for entry in self._registry.list() if entry.online]
        marks, now = self._marks.list(), self._clock.now()
        due = [table for table in online if marks.get(table, TableMark()).is_due(self._work, now)]
        return send_tables(self._queue, due, work=self._work, at=at)


class SendBatchTicks:
    """Asks for batches of the tables with submitted files that wait, or jobs that have not ended.
    Offline tables are among them, and tables that were dropped."""

    def __init__(self, *, batches: FileBatches, queue: JobQueue) -> None:
        self._batches = batches
        self._queue = queue

    def run(self, *, at: str) -> int:
        """Send what is due, as `SendTicks.run`."""
        return send_tables(self._queue, self._batches.tables(), work=BATCHING, at=at)


def send_tables(queue: JobQueue, tables: Sequence[TableId], *, work: str, at: str) -> int:
    """Send a message for each table. Returns how many. at: as of `SendTicks.run`."""
    for start in range(0, len(tables), SENT_AT_ONCE):
        some = tables[start : start + SENT_AT_ONCE]
        queue.send(
            [
                Message(
                    encode_table_message(TableMessage(id_)), message_group=id_, once=f"{id_}/{at}"
                )
                for id_ in some
            ]
        )
    if tables:
        events.emit(events.TICKS_SENT, work=work, tables_count=len(tables))
    return len(tables)
