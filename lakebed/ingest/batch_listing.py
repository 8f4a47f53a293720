"""Lists what became of files that were submitted: those that wait, and batches with their jobs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import msgspec

from lakebed.ingest.batch_files import jobs_in_log, refusals_of
from lakebed.model.jobs import batch_job
from lakebed.model.names import (
    MICROS_PER_SECOND,
    JobId,
    Micros,
    RequestDigest,
    TableId,
    TransactionNumber,
)
from lakebed.ports.clock import Clock
from lakebed.ports.file_batches import Batch, BatchTarget, FileBatches
from lakebed.ports.job_tracker import NOT_COMMITTED, JobTracker
from lakebed.statestore.open_table import OpenTable

BatchState = Literal["planned", "sent", "committed", "ended"]


class RefusedFile(msgspec.Struct, frozen=True):
    """A file that a job left out, and why."""

    file: str
    reason: str


class PendingFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file that waits for a batch.

    size: in bytes.
    version: as it was submitted, such as an ETag.
    seen: when it was submitted, in microseconds of the epoch.
    age_seconds: since then.
    """

    file: str
    size: int
    version: str
    seen: Micros
    age_seconds: int


class BatchReport(msgspec.Struct, frozen=True, kw_only=True):
    """A batch of submitted files, and what became of it.

    state: "committed": its rows are visible, but for those of files that were refused; "ended": it
        was not committed in the time for which ids are remembered, or is not remembered any more.
    files: how many it has.
    bytes: of all files.
    planned: when, in microseconds of the epoch.
    oldest_seconds: how long its oldest file had waited by then.
    sends: how often its job was sent.
    number: the log entry in which it was committed; 0: it is not.
    refused: files that were left out.
    last: the newest report on the job, with its reason; "": none, or it is committed.
    names: of its files.
    """

    batch: int
    job: JobId
    target: BatchTarget
    state: BatchState
    files: int
    bytes: int
    planned: Micros
    oldest_seconds: int
    sends: int
    number: TransactionNumber = NOT_COMMITTED
    refused: tuple[RefusedFile, ...] = ()
    last: str = ""
    names: tuple[str, ...] = ()


class BatchListing:
    """Looks at the batches of tables. Changes nothing."""

    def __init__(self, *, batches: FileBatches, tracker: JobTracker, clock: Clock) -> None:
        self._batches = batches
        self._tracker = tracker
        self._clock = clock

    def pending(self, table: OpenTable, *, limit: int) -> list[PendingFile]:
        """Return files that wait, the oldest first."""
        now = self._clock.now()
        return [
            PendingFile(
                file=one.name,
                size=one.size,
                version=one.version,
                seen=one.seen,
                age_seconds=_seconds(one.seen, now),
            )
            for one in self._batches.pending(table.id, files_max=limit)
        ]

    def batches(self, table: OpenTable, *, below: int | None, limit: int) -> list[BatchReport]:
        """Return batches, the newest first. below: only those with lower numbers; None: all."""
        numbers = [
            b.number for b in self._batches.batches(table.id, below=below, batches_max=limit)
        ]
        ended = self._batches.head(table.id).ended
        landed = jobs_in_log(table, [batch_job(table.id, number) for number in numbers])
        # read again behind the log: with all refusals that came before a commit
        below = max(numbers, default=0) + 1
        found = self._batches.batches(table.id, below=below, batches_max=len(numbers))
        return [self._report(table.id, batch, ended, landed) for batch in found]

    def _report(
        self,
        table: TableId,
        batch: Batch,
        ended: int,
        landed: Mapping[JobId, tuple[TransactionNumber, RequestDigest]],
    ) -> BatchReport:
        job = batch_job(table, batch.number)
        number, digest = landed.get(job, (NOT_COMMITTED, None))
        count = None if digest is None else refusals_of(batch, job, digest)
        state: BatchState = "sent" if batch.sends else "planned"
        if count is not None:
            state = "committed"
        elif batch.number <= ended:
            state = "ended"
        refused = batch.refused[:count]
        oldest = min(file.seen for file in batch.files)
        return BatchReport(
            batch=batch.number,
            job=job,
            target=batch.target,
            state=state,
            files=len(batch.files),
            bytes=batch.bytes,
            planned=batch.planned,
            oldest_seconds=_seconds(oldest, batch.planned),
            sends=batch.sends,
            number=number,
            refused=tuple(RefusedFile(batch.files[one.at].name, one.reason) for one in refused),
            last="" if count is not None else self._last(table, job),
            names=tuple(file.name for file in batch.files),
        )

    def _last(self, table: TableId, job: JobId) -> str:
        """Return what was told of a job last: a hint."""
        report = self._tracker.last(table, job)
        if report is None:
            return ""
        return f"{report.event}: {report.reason}" if report.reason else report.event


def _seconds(since: Micros, until: Micros) -> int:
    return max(0, until - since) // MICROS_PER_SECOND
