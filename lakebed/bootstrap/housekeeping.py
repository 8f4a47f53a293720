"""The scheduled work of a lake in one process: what lambdas, queues and tasks do when deployed.

A round: make batches of submitted files, take them in, split leaves, create compaction jobs, work
on the queue, commit what is queued, give up dead letters, write snapshots and truncate logs,
collect garbage. The sweeps come last, once.

Each kind of work on each table fails alone: it is reported, tried again later, and raised in the
end. So does work that belongs to no one table: what a queue gives, what is swept for all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from lakebed.bootstrap.app import App
from lakebed.bootstrap.batching import batch_files, drop_batches, run_batches
from lakebed.bootstrap.feeds.endings import end_connections
from lakebed.bootstrap.paying.stored_bytes import stored_bytes_of
from lakebed.compaction.dead_letters import GiveUpDeadJobs
from lakebed.errors import (
    ConflictError,
    InvalidError,
    LakebedError,
    SumTooLargeError,
    did_you_mean,
)
from lakebed.model.jobs import (
    BATCHES_QUEUE,
    BATCHING,
    COMPACTION_CREATION,
    GARBAGE,
    SNAPSHOTS,
    SPLITTING,
    SWEEP,
    TICK_KINDS,
    batch_message_in,
    decode_message,
)
from lakebed.model.names import MICROS_PER_SECOND, Micros, TableId, TableName
from lakebed.observe import usage
from lakebed.ports.job_queue import JobQueue, Received
from lakebed.ports.job_tracker import KEPT_SECONDS
from lakebed.ports.table_registry import TableEntry
from lakebed.statestore.open_table import OpenTable
from lakebed.statestore.write_snapshot import WriteSnapshot
from lakebed.tables.catalog import NAMELESS
from lakebed.tasks.failed_work import (
    ALL_TABLES,
    ALL_TABLES_ID,
    FailedWork,
    T,
    by_gravity,
    explain,
    raise_gravest,
    report_failed,
)
from lakebed.tasks.keep_hidden import keep_hidden
from lakebed.tasks.task_reports import TaskReports
from lakebed.tasks.work_done import WorkDone
from lakebed.tasks.worker import FailurePolicy, Visibility, Worker

HIDDEN_SECONDS = 30.0
JOBS_PER_ROUND_MAX = 10_000

OPENING, COMPACTION = "opening", "compaction"
"""Work besides the scheduled kinds, in failures: reading a log, a compaction job."""
TAKING_IN, DEAD_LETTERS = "taking-in", "dead-letters"
LEFTOVERS, NAMELESS_LOGS, REPORTS = "leftovers", "nameless-logs", "reports"
"""Work for all tables together; each of these kinds fails alone, too."""
COMMITS, HISTORY = "commits", "history"
KINDS = (*TICK_KINDS, BATCHING, COMPACTION, COMMITS, HISTORY)
"""Kinds of work that may be done alone: on tables, what waits in queues, what became of jobs."""

Work = Callable[[OpenTable], WorkDone]


class Housekeeping:
    """Does what is due. Several processes may do it at once on one lake.

    on_progress: is called with what has been done so far, after each job, for people who watch.
    """

    def __init__(self, app: App, *, on_progress: Callable[[str], None] = lambda _: None) -> None:
        self._app = app
        self._on_progress = on_progress
        self._failed = app.failed_tables
        self._failed_now: list[FailedWork] = []
        self._dropped: set[TableId] = set()
        self._kinds: frozenset[str] = frozenset(KINDS)
        self._merged = 0
        queue = app.queue
        task = f"{app.rng.getrandbits(64):016x}"
        self._reports = TaskReports("compaction", task, tracker=app.tracker, clock=app.clock)
        self._worker = Worker(
            queue=queue,
            handle=self._run_job,
            job_ended=self._reports.job_ended,
            visibility=_kept_hidden(queue),
            failures=FailurePolicy(bugs=True),
        )
        self._stored = stored_bytes_of(app)
        self._write_snapshot = WriteSnapshot(snapshots=app.heads.snapshots, logs=app.logs)
        self._give_up_dead_jobs = GiveUpDeadJobs(
            jobs=queue,
            commits=app.commit_queue,
            objects=app.objects,
            find_table=app.catalog.find_id,
            give_up=app.give_up,
            tracker=app.tracker,
        )

    def run(
        self,
        tables: Sequence[TableName] | None = None,
        *,
        kinds: Sequence[str] | None = None,
        everything: bool = False,
        should_stop: Callable[[], bool] = lambda: False,
        failed: Callable[[FailedWork], None] | None = None,
    ) -> WorkDone:
        """Work until nothing is due, then sweep.

        tables: None for all online ones.
        kinds: of work, out of `KINDS`; None: all.
        everything: merge until each leaf has one file.
        should_stop: asked between jobs; once true, the sweep is left to the next run.
        failed: called in the end with what failed on a table, or for all, the gravest first; None:
            the gravest error is raised then.
        """
        self._kinds = _checked(kinds)
        self._failed_now.clear()
        named = self._entries(tables) if tables is not None else ()
        for id_ in (*(entry.id for entry in named), *([ALL_TABLES_ID] if named else ())):
            self._failed.forget(id_)  # who names a table wants it tried
        total = self._worked(tables, everything=everything, should_stop=should_stop)
        ids = {entry.id for entry in self._entries(tables)}
        standing = self._failed.of({*ids, *self._dropped, ALL_TABLES_ID})
        failures = by_gravity([*standing, *self._failed_now])
        if failed is None:
            raise_gravest(failures)
        else:
            for one in failures:
                failed(one)
        return total

    def _worked(
        self,
        tables: Sequence[TableName] | None,
        *,
        everything: bool,
        should_stop: Callable[[], bool],
    ) -> WorkDone:
        total = WorkDone()
        try:
            while not should_stop():
                done = self.round(tables, everything=everything, should_stop=should_stop)
                total = total.plus(done)
                if done.is_nothing:
                    return total.plus(self.sweep(tables)).plus(self._keep_history(tables))
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
        total = WorkDone() if everything else self._batched(tables, should_stop)
        entries = self._entries(tables)
        create = partial(self._create_jobs, everything=everything)
        for entry in entries:
            total = total.plus(
                self._work_on(entry, {SPLITTING: self._split, COMPACTION_CREATION: create})
            )
        total = total.plus(self._queued(should_stop))
        for entry in entries:
            total = total.plus(
                self._work_on(entry, {GARBAGE: self._collect, SNAPSHOTS: self._snapshot})
            )
        return total

    def _batched(
        self, tables: Sequence[TableName] | None, should_stop: Callable[[], bool]
    ) -> WorkDone:
        """Make batches of submitted files, of offline tables too, and take them in."""
        total = WorkDone()
        if BATCHING not in self._kinds or self._app.local is None or self._app.batches is None:
            return total  # functions and tasks of the instance do it
        known = self._app.catalog.list()
        busy = self._for_all(BATCHING, self._app.batches.tables)
        if busy is None:  # what waits for all tables cannot be read
            return total
        if tables is None:
            self._drop_batches({*busy} - {entry.id for entry in known})
        wanted = {entry.name for entry in known} if tables is None else set(tables)
        entries = [one for one in known if one.name in wanted and not one.quarantined]
        failing = self._failed.of({entry.id for entry in entries})
        failing_names = {one.table for one in failing if one.work == BATCHING}
        for entry in entries:
            if entry.id in busy or entry.name in failing_names:
                total = total.plus(self._work_on(entry, {BATCHING: self._batch}))
        queue = self._app.queues.open(BATCHES_QUEUE)  # an instance has none: its batches are tasks'
        ingester = Worker(
            queue=queue,
            handle=self._run_batch,
            visibility=_kept_hidden(queue),
            failures=FailurePolicy(bugs=True),
        )
        work = partial(ingester.run, jobs_max=JOBS_PER_ROUND_MAX, should_stop=should_stop)
        return total.plus(WorkDone(batches_ingested=self._for_all(TAKING_IN, work) or 0))

    def _drop_batches(self, nameless: set[TableId]) -> None:
        """Forget batches of tables that are gone."""
        self._dropped = nameless
        drop = drop_batches(self._app)
        for id_ in sorted(nameless):
            self._failed.attempt(id_, NAMELESS, BATCHING, partial(drop.run, id_))

    def _batch(self, table: OpenTable) -> WorkDone:
        return WorkDone(batches_planned=batch_files(self._app).run(table))

    def _queued(self, should_stop: Callable[[], bool]) -> WorkDone:
        """Do what waits in queues."""
        done = WorkDone()
        if COMPACTION in self._kinds:
            merge = partial(self._worker.run, jobs_max=JOBS_PER_ROUND_MAX, should_stop=should_stop)
            done = done.plus(WorkDone(jobs_done=self._for_all(COMPACTION, merge) or 0))
        if COMMITS in self._kinds:
            commit = partial(
                self._app.committer.run, batches_max=JOBS_PER_ROUND_MAX, should_stop=should_stop
            )
            done = done.plus(WorkDone(commits_answered=self._for_all(COMMITS, commit) or 0))
        if COMPACTION in self._kinds:
            given_up = self._for_all(DEAD_LETTERS, self._give_up_dead_jobs.run) or 0
            done = done.plus(WorkDone(jobs_given_up=given_up))
        return done

    def sweep(self, tables: Sequence[TableName] | None = None) -> WorkDone:
        """Sweep objects that never got a reference, logs that never got a name, old reports, and
        what tables know of connections that were dropped."""
        if SWEEP not in self._kinds:
            return WorkDone()
        total = WorkDone(objects_swept=self._for_all(LEFTOVERS, self._app.leftovers.sweep) or 0)
        for entry in self._entries(tables):
            total = total.plus(self._work_on(entry, {SWEEP: self._sweep}))
        if tables is None:
            bury = partial(self._app.catalog.sweep_nameless, self._nameless_failed)
            total = total.plus(WorkDone(objects_swept=self._for_all(NAMELESS_LOGS, bury) or 0))
            end_connections(self._app).run_quietly()
            old = Micros(self._app.clock.now() - KEPT_SECONDS * MICROS_PER_SECOND)
            self._for_all(REPORTS, partial(self._app.tracker.forget, before=old))
        return total

    def _keep_history(self, tables: Sequence[TableName] | None) -> WorkDone:
        """Keep the days that have ended, where the lake has tables for them."""
        if HISTORY not in self._kinds or tables is not None:
            return WorkDone()
        from lakebed.history.job_table import JOBS_TABLE
        from lakebed.history.usage_table import USAGE_TABLE

        works = {JOBS_TABLE: self._kept_jobs}
        if self._app.paying.ledger is not None:
            works[USAGE_TABLE] = self._kept_usage
        total = WorkDone()
        for entry in self._entries(None):
            if entry.name in works:
                total = total.plus(self._work_on(entry, {HISTORY: works[entry.name]}))
        return total

    def _kept_jobs(self, table: OpenTable) -> WorkDone:
        from lakebed.bootstrap.history import keep_jobs

        return WorkDone(days_kept=keep_jobs(self._app, table).days)

    def _kept_usage(self, table: OpenTable) -> WorkDone:
        from lakebed.bootstrap.history import keep_usage

        return WorkDone(usage_days_kept=keep_usage(self._app, table).days)

    def _nameless_failed(self, id_: TableId, error: LakebedError) -> None:
        report_failed(NAMELESS, SWEEP, error, id=id_)
        self._failed_now.append(FailedWork(table=NAMELESS, work=SWEEP, error=error))

    def _entries(self, tables: Sequence[TableName] | None) -> list[TableEntry]:
        entries = self._app.catalog.list()
        return [e for e in entries if (e.online if tables is None else e.name in tables)]

    def _work_on(self, entry: TableEntry, works: Mapping[str, Work]) -> WorkDone:
        """Do several kinds of work on a table. Each fails alone, and is tried again later."""
        total = WorkDone()
        attempt = partial(self._failed.attempt, entry.id, entry.name)
        table = attempt(OPENING, partial(self._opened, entry))
        if table is not None:
            for name, work in works.items():
                if name not in self._kinds:
                    continue
                with usage.work(name, entry.id):
                    done = attempt(name, partial(work, table))
                total = total.plus(done or WorkDone())
        return total

    def _for_all(self, work: str, act: Callable[[], T]) -> T | None:
        """Do work that belongs to no one table. It fails alone, too; None: it failed."""
        return self._failed.attempt(ALL_TABLES_ID, ALL_TABLES, work, act)

    def _opened(self, entry: TableEntry) -> OpenTable | None:
        """Return a table whose log can be read; None: it was dropped."""
        table = self._app.catalog.opened(entry)
        with table.head.reading() as state:
            return None if state.head().dropped else table

    def _split(self, table: OpenTable) -> WorkDone:
        return WorkDone(leaves_split=self._app.split_leaves.run(table))

    def _create_jobs(self, table: OpenTable, *, everything: bool) -> WorkDone:
        return WorkDone(jobs_created=self._app.create_jobs.run(table, everything=everything))

    def _collect(self, table: OpenTable) -> WorkDone:
        return WorkDone(files_collected=self._app.collect.run(table))

    def _snapshot(self, table: OpenTable) -> WorkDone:
        return WorkDone(snapshots_written=self._write_snapshot.run(table))

    def _sweep(self, table: OpenTable) -> WorkDone:
        swept = self._app.sweep.run(table)
        if self._stored is not None:
            self._stored.run(table)
        return WorkDone(objects_swept=swept)

    def _run_job(self, message: Received) -> None:
        job = decode_message(message.body)
        table = self._app.catalog.find_id(job.table)
        if table is None:
            return
        try:
            self._app.run_job.run(table, job.job, rejected=partial(self._job_failed, table))
        except ConflictError:
            raise
        except Exception as error:  # bugs too: they are raised in the end
            self._job_failed(table, error)
            raise
        self._merged += 1
        with table.head.reading() as state:
            left = len(state.jobs())
        self._on_progress(f"{self._merged:,} jobs merged; {left:,} of table {table.name} left")

    def _run_batch(self, message: Received) -> None:
        """Take a batch in. What fails is tried again, when its message comes back."""
        batch = batch_message_in(message.body)
        if batch is None:
            hint = "let only this release's batching send messages there"
            raise InvalidError(
                "the message is not about a batch", bytes=len(message.body), hint=hint
            )
        try:
            done = run_batches(self._app).run(batch)
        except Exception as error:  # bugs too: they are raised in the end
            self._failed_now.append(FailedWork(table=batch.table, work=BATCHING, error=error))
            raise
        if not done.repeated:
            self._on_progress(f"batch {batch.batch} of table {batch.table}: {done.rows:,} rows")

    def _job_failed(self, table: OpenTable, error: Exception) -> None:
        """Keep it for the end of the run. A sum too large is not damage: `status` shows it."""
        explain(error, table=table.name, id_=table.id)
        if not isinstance(error, SumTooLargeError):
            self._failed_now.append(FailedWork(table=table.name, work=COMPACTION, error=error))


def _kept_hidden(queue: JobQueue) -> Visibility:
    """Return how messages of a queue stay out of sight while their jobs run."""
    return Visibility(
        hidden_seconds=HIDDEN_SECONDS,
        keep_hidden=lambda m: keep_hidden(queue, m.receipt, hidden_seconds=HIDDEN_SECONDS),
    )


def _checked(kinds: Sequence[str] | None) -> frozenset[str]:
    """Return the kinds of work to do. Raises: InvalidError: there is no such kind."""
    for kind in kinds or ():
        if kind not in KINDS:
            hint = did_you_mean(kind, KINDS, what="kind of work")
            raise InvalidError("there is no such kind of work", kind=kind, hint=hint)
    return frozenset(KINDS if kinds is None else kinds)
