"""Finds for `fsck` what dead processes left on this machine, and removes it; what people left among
the logs is only found."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from lakebed.backends.local.job_queues import SqliteJobQueues
from lakebed.backends.local.object_store import LocalObjectStore
from lakebed.backends.local.process_folder import (
    ProcessFolder,
    dead_in,
    others_alive,
    remove_dead,
)
from lakebed.backends.local.transaction_logs import SqliteTransactionLogs
from lakebed.errors import ConflictError
from lakebed.ports.job_queue import JobQueues
from lakebed.ports.object_store import ObjectStore
from lakebed.ports.transaction_log import TransactionLogs

if TYPE_CHECKING:
    from lakebed.inspection.findings import Finding

UNFINISHED_SECONDS_MAX = 48 * 3_600.0
"""Most seconds that another machine takes to finish an object: as long as a job may be pending."""


class Leftovers:
    """Looks into the folder in which each process has one of its own, and into what of a lake lies
    on this machine."""

    def __init__(
        self, logs: TransactionLogs, objects: ObjectStore, queues: JobQueues, spill: Path
    ) -> None:
        self._logs = logs
        self._objects = objects
        self._queues = queues
        self._spill = spill

    def find(self) -> list[Finding]:
        """Return a finding for each."""
        from lakebed.inspection.findings import finding

        problems = self._queues.problems() if isinstance(self._queues, SqliteJobQueues) else ()
        strays = self._logs.strays() if isinstance(self._logs, SqliteTransactionLogs) else ()
        objects = self._objects
        unfinished = objects.unfinished() if isinstance(objects, LocalObjectStore) else ()
        return [
            *(finding("queue-damaged", problem=problem) for problem in problems),
            *(finding("log-stray", name=name) for name in strays),
            *(finding("unfinished-upload", name=name) for name in unfinished),
            *(finding("spill-left", name=path.name) for path in dead_in(self._spill)),
        ]

    def sweep(self) -> int:
        """Remove them, however new: the dead hold no lock. Returns how many.

        An unfinished object in a bucket may be a living process's: only old ones go.
        """
        is_here = isinstance(self._objects, LocalObjectStore)
        age = 0.0 if is_here else UNFINISHED_SECONDS_MAX
        return self._objects.abort_unfinished(older_than_seconds=age) + remove_dead(self._spill)

    def require_alone(self, own: ProcessFolder) -> None:
        """Raise ConflictError while another process on this machine has the lake open. own: the
        folder of this process."""
        others = others_alive(self._spill, own)
        if others:
            hint = "end it, then repair again"
            raise ConflictError("another process has the lake open", process=others[0], hint=hint)
