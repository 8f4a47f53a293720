"""The scheduled work of a lake in one process: what lambdas, queues and tasks do when deployed.

A round: split leaves, create compaction jobs, work on the queue, commit what is queued, give up
dead letters, write snapshots and truncate logs, collect garbage. The sweeps come last, once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import msgspec

from lakebed.bootstrap.app import App
from lakebed.compaction.dead_letters import GiveUpDeadJobs
from lakebed.errors import ConflictError
from lakebed.model.jobs import decode_message
from lakebed.model.names import MICROS_PER_SECOND, Micros, TableName
from lakebed.observe import events
from lakebed.ports.job_queue import Received
from lakebed.ports.job_tracker import KEPT_SECONDS
from lakebed.ports.table_registry import TableEntry
from lakebed.statestore.open_table import OpenTable
from lakebed.statestore.write_snapshot import WriteSnapshot
from lakebed.tasks.keep_hidden import keep_hidden
from lakebed.tasks.task_reports import TaskReports
from lakebed.tasks.worker import Visibility, Worker

HIDDEN_SECONDS = 30.0
JOBS_PER_ROUND_MAX = 10_000


class WorkDone(msgspec.Struct, frozen=True):
    """What a round did, in counts."""

    leaves_split: int = 0
    jobs_created: int = 0
    jobs_done: int = 0
    commits_answered: int = 0
    jobs_given_up: int = 0
    snapshots_written: int = 0
    files_collected: int = 0
    objects_swept: int = 0

    def plus(self, other: WorkDone) -> WorkDone:
        """Return the sums."""
        mine, others = msgspec.structs.astuple(self), msgspec.structs.astuple(other)
        return WorkDone(*(a + b for a, b in zip(mine, others, strict=True)))

    @property
    def is_nothing(self) -> bool:
        """Whether there was nothing to do."""
        return not any(msgspec.structs.astuple(self))


class Housekeeping:
    """Does what is due. Several processes may do it at once on one lake.

    told: is called with what has been done so far, after each job, for people who watch.
    """

    def __init__(self, app: App, *, told: Callable[[str], None] = lambda _: None) -> None:
        self._app = app
        self._told = told
        queue = app.queue
        task = f"{app.chance.getrandbits(64):016x}"
        self._reports = TaskReports("compaction", task, tracker=app.tracker, clock=app.clock)
        self._worker = Worker(
            queue=queue,
            handle=self._run_job,
            job_ended=self._reports.job_ended,
            visibility=Visibility(
                hidden_seconds=HIDDEN_SECONDS,
                keep_hidden=lambda m: keep_hidden(queue, m.receipt, hidden_seconds=HIDDEN_SECONDS),
            ),
        )

        self._write_snapshot = WriteSnapshot(snapshots=app.heads.snapshots, logs=app.logs)
        self._give_up_dead_jobs = GiveUpDeadJobs(
            jobs=queue,
            commits=app.commit_queue,
            objects=app.objects,
            find_table=app.table_of,
            give_up=app.give_up,
            tracker=app.tracker,
        )

    def run(
        self,
        tables: Sequence[TableName] | None = None,
        *,
        everything: bool = False,
        should_stop: Callable[[], bool] = lambda: False,
    ) -> WorkDone:
        """Work until nothing is due, then sweep. tables: None for all online ones.

        everything: merge until each leaf has one file. should_stop: asked between jobs; once true,
        the sweep is left to the next run.
        """
        total = WorkDone()
        try:
            while not should_stop():
                done = self.round(tables, everything=everything, should_stop=should_stop)
                total = total.plus(done)
                if done.is_nothing:
                    return total.plus(self.sweep(tables))
        finally:
            self._reports.end()
        return total

    def round(
        self,
        tables: Sequence[TableName] | None = None,
        *,
        everything: bool = False,
        should_stop: Callable[[], bool] = lambda: False,
    ) -> WorkDone:
        """Do once what is due."""
        total = WorkDone()
        opened = [self._app.catalog.opened(entry) for entry in self._entries(tables)]
        for table in opened:
            total = total.plus(self._attempted(table, partial(self._plan, everything=everything)))
        total = total.plus(
            WorkDone(
                jobs_done=self._worker.run(jobs_max=JOBS_PER_ROUND_MAX, should_stop=should_stop),
                commits_answered=self._app.committer.run(
                    batches_max=JOBS_PER_ROUND_MAX, should_stop=should_stop
                ),
                jobs_given_up=self._give_up_dead_jobs.run(),
            )
        )
        for table in opened:
            total = total.plus(self._attempted(table, self._tidy))
        return total

    def sweep(self, tables: Sequence[TableName] | None = None) -> WorkDone:
        """Sweep objects that never got a reference, logs that never got a name, old reports."""
        swept = self._app.sweep_leftovers()
        for entry in self._entries(tables):
            swept += self._app.sweep.run(self._app.catalog.opened(entry))
        if tables is None:
            swept += self._app.catalog.sweep_nameless()
            old = self._app.clock.now() - KEPT_SECONDS * MICROS_PER_SECOND
            self._app.tracker.forget(before=Micros(old))
        return WorkDone(objects_swept=swept)

    def _entries(self, tables: Sequence[TableName] | None) -> list[TableEntry]:
        entries = self._app.catalog.list()
        return [e for e in entries if (e.online if tables is None else e.name in tables)]

    def _attempted(self, table: OpenTable, work: Callable[[OpenTable], WorkDone]) -> WorkDone:
        """One table's lost race does not hold up the others; the next round plans anew."""
        try:
            return work(table)
        except ConflictError as error:
            events.tell(events.JOB_FAILED, table=table.name, code=error.code(), reason=error)
            return WorkDone()

    def _plan(self, table: OpenTable, *, everything: bool) -> WorkDone:
        with table.head.reading() as state:
            if state.head().dropped:
                return WorkDone()
        return WorkDone(
            leaves_split=self._app.split_leaves.run(table),
            jobs_created=self._app.create_jobs.run(table, everything=everything),
        )

    def _tidy(self, table: OpenTable) -> WorkDone:
        with table.head.reading() as state:
            if state.head().dropped:
                return WorkDone()
        collected = self._app.collect.run(table)
        return WorkDone(
            snapshots_written=self._write_snapshot.run(table), files_collected=collected
        )

    def _run_job(self, message: Received) -> None:
        job = decode_message(message.body)
        table = self._app.table_of(job.table)
        if table is not None:
            self._app.run_job.run(table, job.job)
            self._told(f"{table.name}: merged job {job.job[:8]}")
