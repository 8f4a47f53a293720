"""The batcher: files that wait become batches, batches become jobs, and jobs are seen to their end.

One batch of a table is open at a time. Each step of it may be done again, by any process: what it
holds was written down before. Its job is at an end when the log has its id; the digest there says
which of its files were taken in (docs/design/batching.md).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from lakebed.config.settings import TableSettings
from lakebed.errors import ConflictError
from lakebed.ingest.plan_batches import TargetFigures, next_batch, target_of
from lakebed.model.jobs import BatchMessage, batch_job, encode_batch_message
from lakebed.model.names import (
    MICROS_PER_SECOND,
    CommitId,
    JobId,
    Micros,
    RequestDigest,
    TransactionNumber,
)
from lakebed.observe import events
from lakebed.ports.clock import Clock
from lakebed.ports.file_batches import (
    Batch,
    BatchHead,
    BatchTarget,
    FileBatches,
    SubmittedFile,
    digest_of_batch,
    head_after,
)
from lakebed.ports.job_queue import JobQueue, Message
from lakebed.ports.job_tracker import JobKind, JobTracker
from lakebed.statestore.open_table import OpenTable
from lakebed.tasks.job_reports import JobReports

PENDING_MAX = 100_000
"""Files that wait of which the oldest are chosen. Beyond that some of the oldest are."""
BATCHES_AT_ONCE = 20
"""Most batches of a table that are planned in one run."""
FOLLOWED_MAX = 100
"""Batches whose jobs are looked for in one run, the oldest that have not ended."""
NUMBERS_TRIED = 100
RESEND_SECONDS_MAX = 6 * 3_600
"""Most seconds that a job is waited for before it is sent again; for a bulk import, always this."""
REJECTED_IMPORT = "rejected", "bulk import"
KINDS: Mapping[BatchTarget, JobKind] = {"ingest": "ingest", "bulk-import": "bulk import"}


class BatchFiles:
    """Makes batches, and sends their jobs. queues: who takes a batch in; what has none is an
    ingest. Several may run at once on one table."""

    def __init__(
        self,
        *,
        batches: FileBatches,
        queues: Mapping[BatchTarget, JobQueue],
        tracker: JobTracker,
        clock: Clock,
    ) -> None:
        self._batches = batches
        self._queues = queues
        self._tracker = tracker
        self._clock = clock

    def run(self, table: OpenTable) -> int:
        """Do what is due on a table. Returns how many batches were planned.

        Raises:
            UnavailableError, UnknownOutcomeError: run it again; nothing is done twice.
        """
        settings = table.settings()
        self._finish_open(table, settings)
        self._follow(table, settings)
        planned = self._plan_all(table, settings)
        now = self._time_to_forget(table, settings, lambda _now: False)
        oldest = Micros(now - settings.job_id_seconds_min * MICROS_PER_SECOND)
        self._batches.forget(table.id, before=oldest, now=now)
        self._batches.rest(table.id)
        return planned

    def _time_to_forget(
        self, table: OpenTable, settings: TableSettings, is_due: Callable[[Micros], bool]
    ) -> Micros:
        """Return the time by which to judge whether jobs and files of batches are forgotten: the
        smaller of this machine's clock and what the log says (H35)."""
        now = self._clock.now()
        return min(now, table.forgetting_time(settings.job_id_seconds_min, is_due))

    def _time_to_write(self, table: OpenTable) -> Micros:
        """Return the time to write down, from which on jobs and files are known: the greater of
        this machine's clock and log time (H35)."""
        return max(self._clock.now(), table.head.log_time())

    def _plan_all(self, table: OpenTable, settings: TableSettings) -> int:
        """Plan all batches that are due, each when the one before is closed. Returns how many.

        The head is read before the files that wait: where it is still the same when a batch is put,
        no other process has taken one of them meanwhile.
        """
        head = self._batches.head(table.id)
        pending = self._batches.pending(table.id, files_max=PENDING_MAX)
        planned = 0
        while planned < BATCHES_AT_ONCE:
            files = next_batch(pending, settings, self._clock.now())
            if not files:
                break
            batch = Batch(
                number=_next_number(table, head),
                files=tuple(files),
                target=self._target(table, settings, files),
                planned=self._time_to_write(table),
            )
            try:
                self._batches.plan(table.id, batch, head)
            except ConflictError:  # another process put one, or an earlier try of ours
                self._finish_open(table, settings)
                break
            self._finish_open(table, settings)
            head = head_after(batch, head)._replace(closed=batch.number)
            planned += 1
            taken = set(files)
            pending = [file for file in pending if file not in taken]
        return planned

    def _target(
        self, table: OpenTable, settings: TableSettings, files: Sequence[SubmittedFile]
    ) -> BatchTarget:
        with table.head.reading() as state:
            leaves = state.leaf_figures()
        figures = TargetFigures(
            sum(leaf.rows for leaf in leaves), sum(leaf.size for leaf in leaves), len(leaves)
        )
        target = target_of(files, settings, figures)
        return target if target in self._queues else "ingest"

    def _finish_open(self, table: OpenTable, settings: TableSettings) -> None:
        """Do all steps of the open batch, if there is one: its files wait no more, its job is sent.

        First its files are remembered as taken: else one that is submitted again, while it is
        removed from those that wait, would come into a second batch.
        """
        head = self._batches.head(table.id)
        if head.planned == head.closed:
            return
        batch = self._batches.batch(table.id, head.planned)
        assert batch is not None, f"batch {head.planned} of {table.id} is open and not there"
        kept = settings.job_id_seconds_min * MICROS_PER_SECOND
        seen = max(file.seen for file in batch.files)
        until = Micros(max(self._time_to_write(table), batch.planned, seen) + kept)
        self._batches.take(table.id, batch, until=until)
        self._batches.remove(table.id, batch)
        self._send(table, batch, batch.target, sends=1)
        self._batches.finish(table.id, batch.number, sent=self._clock.now())

    def _send(self, table: OpenTable, batch: Batch, target: BatchTarget, *, sends: int) -> None:
        job = batch_job(table.id, batch.number)
        message = BatchMessage(id=job, table=table.name, table_id=table.id, batch=batch.number)
        body = encode_batch_message(message)
        queue = self._queues.get(target, self._queues["ingest"])
        queue.send([Message(body, message_group=job, once=f"{job}/{sends}")])
        JobReports(KINDS[target], tracker=self._tracker, clock=self._clock).report(
            table.id, job, "sent"
        )
        events.emit(
            events.BATCH_SENT,
            table=table.name,
            job=job,
            files_count=len(batch.files),
            bytes_count=batch.bytes,
            sends=sends,
        )

    def _follow(self, table: OpenTable, settings: TableSettings) -> None:
        """See batches to an end whose jobs are in the log, and send the others again in time.

        The log is read before the batches: so all refusals are read that came before a commit.
        """
        head = self._batches.head(table.id)
        numbers = range(head.ended + 1, min(head.closed, head.ended + FOLLOWED_MAX) + 1)
        if not numbers:
            return
        landed = jobs_in_log(table, [batch_job(table.id, number) for number in numbers])
        listed = self._batches.batches(table.id, below=numbers.stop, batches_max=FOLLOWED_MAX)
        found = sorted((b for b in listed if b.number in numbers), key=lambda one: one.number)
        kept = settings.job_id_seconds_min * MICROS_PER_SECOND
        now = self._time_to_forget(
            table, settings, lambda now: any(now - batch.planned >= kept for batch in found)
        )
        all_ended = True
        for batch in found:
            _, digest = landed.get(batch_job(table.id, batch.number), (None, None))
            if digest is None and now - batch.planned < kept:
                all_ended = False
                self._send_again(table, batch, settings)
            elif all_ended:
                self._end(table, batch, digest)

    def _end(self, table: OpenTable, batch: Batch, digest: RequestDigest | None) -> None:
        """Tell that a batch is at an end. digest: None: its job was not committed in all the time
        for which its id would be remembered."""
        job = batch_job(table.id, batch.number)
        count = None if digest is None else refusals_of(batch, job, digest)
        taken = () if count is None else batch.left(count)
        left_out = set(batch.files) - set(taken)
        self._batches.end(table.id, batch.number, free=sorted(left_out, key=lambda f: f.name))
        if digest is None:
            reports = JobReports(KINDS[batch.target], tracker=self._tracker, clock=self._clock)
            reports.report_lost(
                table.id, job, reason="it was not committed; submit its files again"
            )
        events.emit(
            events.BATCH_ENDED,
            table=table.name,
            job=job,
            files_count=len(taken),
            refused_count=len(left_out),
        )

    def _send_again(self, table: OpenTable, batch: Batch, settings: TableSettings) -> None:
        """Send a job again whose message may be lost, or that failed too often, after a time that
        doubles. A bulk import has longer; one that was rejected becomes an ingest, which leaves
        files out."""
        seconds = min(
            settings.redispatch_seconds << min(max(batch.sends - 1, 0), 20), RESEND_SECONDS_MAX
        )
        target = batch.target
        if target == "bulk-import":
            last = self._tracker.last(table.id, batch_job(table.id, batch.number))
            is_rejected = last is not None and (last.event, last.kind) == REJECTED_IMPORT
            if is_rejected or (last is not None and last.kind == "ingest"):
                target = "ingest"
            seconds = 0 if is_rejected else RESEND_SECONDS_MAX
        passed = self._clock.now() - batch.sent
        if abs(passed) < seconds * MICROS_PER_SECOND:  # below zero: a clock was ahead
            return
        self._send(table, batch, target, sends=batch.sends + 1)
        self._batches.sent_again(
            table.id, batch.number, sends=batch.sends + 1, sent=self._clock.now()
        )


def refusals_of(batch: Batch, job: JobId, digest: RequestDigest) -> int | None:
    """Return how many refusals there were when a batch was committed as the log says; None: its id
    was used for something else."""
    counts = range(len(batch.refused), -1, -1)
    return next((n for n in counts if digest_of_batch(job, batch.left(n)) == digest), None)


def jobs_in_log(
    table: OpenTable, jobs: Sequence[JobId]
) -> dict[JobId, tuple[TransactionNumber, RequestDigest]]:
    """Return which of these jobs the log has, as far as it remembers: the entry, and the digest of
    what was taken in."""
    with table.head.reading() as state:
        landed = state.landed([CommitId(job) for job in jobs]).commits
    return {JobId(id_): found for id_, found in landed.items()}


def _next_number(table: OpenTable, head: BatchHead) -> int:
    """Return the next number whose job the log does not have: after the batches were lost, by a
    restore from an older copy, numbers begin again."""
    number = head.planned + 1
    while True:
        numbers = range(number, number + NUMBERS_TRIED)
        known = jobs_in_log(table, [batch_job(table.id, one) for one in numbers])
        free = [one for one in numbers if batch_job(table.id, one) not in known]
        if free:
            return free[0]
        number = numbers.stop
