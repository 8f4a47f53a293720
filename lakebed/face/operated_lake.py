"""Operates a lake: its status, its dead letters, its damage, copies of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from lakebed.bootstrap.commit_queue import commit_queued
from lakebed.bootstrap.open_lake import OpenLake
from lakebed.ports.job_tracker import NO_TABLE, JobReport, TaskReport
from lakebed.tasks.failed_work import FailedWork, by_gravity, raise_gravest

if TYPE_CHECKING:
    from lakebed.backups.copy_lake import LakeCopied
    from lakebed.bootstrap.history import Kept
    from lakebed.inspection.dead_letters import Letter, QueueLetters
    from lakebed.inspection.fsck import FsckReport
    from lakebed.inspection.log_repair import LogRepairAction
    from lakebed.inspection.redrive import Redriven
    from lakebed.inspection.repair import RepairPlan, StepDone
    from lakebed.inspection.report import Report
    from lakebed.inspection.status import TableStatus
    from lakebed.tasks.start_by_hand import TasksStarted

STATES_BYTES_MAX = 8 << 30
"""Most bytes of states that a committer keeps on the local disk: tables of fifty million files."""


class OperatedLake(OpenLake):
    """A lake that is looked after."""

    def status(
        self, table: str | None = None, *, failed: Callable[[FailedWork], None] | None = None
    ) -> list[TableStatus]:
        """Return what one table, or each, looks like now: its tree, rows, files, jobs, garbage.

        failed: called with each table that cannot be read or is in quarantine, and why.

        Raises:
            TableMissingError: with the nearest known name.
            LakebedError: the gravest error that a table met; only where `failed` is not given.
        """
        found, failures = self._app.inspection.status().run(table)
        if failed is None:
            raise_gravest(failures)
        else:
            for one in by_gravity(failures):
                failed(one)
        return found

    def commit_queued(
        self,
        *,
        wait_seconds: float = 0.0,
        states_bytes_max: int = STATES_BYTES_MAX,
        should_stop: Callable[[], bool] = lambda: False,
        on_progress: Callable[[int], None] = lambda _: None,
    ) -> int:
        """Put queued commits into the log until the queue gives none, as `run` does; return how
        many were answered.

        wait_seconds: how long to wait for a first message.
        states_bytes_max: of the states of tables that stay on this machine.
        should_stop: asked between batches.
        on_progress: called with how many commits were answered so far.
        """
        return commit_queued(
            self._app,
            wait_seconds=wait_seconds,
            states_bytes_max=states_bytes_max,
            should_stop=should_stop,
            on_progress=on_progress,
        )

    def nameless_jobs(
        self,
        *,
        job: str | None = None,
        events: Sequence[str] = (),
        since_seconds: float | None = None,
        limit: int = 20,
    ) -> list[JobReport]:
        """Return the reports on messages that name no table that there is, as `Table.jobs`."""
        return self._app.inspection.job_history().find(
            NO_TABLE, job=job, events=events, since_seconds=since_seconds, limit=limit
        )

    def tasks(self, *, limit: int = 20) -> list[TaskReport]:
        """Return how far workers have come, the newest first. Hints."""
        return self._app.tracker.tasks(reports_max=limit)

    def keep_jobs(self, *, days: int = 400) -> Kept:
        """Keep the jobs that ended on each day as rows of the table `lakebed-jobs`, and what work
        used in each hour as rows of `lakebed-usage`. The tables are made if there are none: the
        last week is kept now, later days by `run`, each day once.

        days: for which new tables keep them; of one that is there its age-off says it.

        Raises:
            InvalidError: not a number of days. What `Table.ingest` raises.
        """
        from lakebed.bootstrap.history import keep_history

        return keep_history(self._app, days=days)

    def start_tasks(self, kind: str, *, count: int = 1) -> TasksStarted:
        """Start tasks now, without waiting for the schedule: of an instance on ECS; of a directory
        as processes of this machine, whose end is waited for.

        kind: `compaction`, or, of an instance, `ingest`.

        Raises:
            InvalidError: there are no tasks of this kind, or more would run than the instance's
                settings allow; none was started.
            DeniedError: the credentials do not permit it. UnavailableError: the platform refuses
                for now; some may have been started.
        """
        from lakebed.bootstrap.task_starts import start_tasks

        return start_tasks(self._app, kind, count)

    def report(
        self,
        name: str,
        table: str | None = None,
        *,
        since_seconds: float | None = None,
        limit: int = 100_000,
    ) -> Report:
        """Return a report of one table, or of all: `partitions`, `files`, `jobs`, `tasks`,
        `batches`, `queries`, `dead-letters`, `costs` or `status`. Its `table()` gives the rows as a
        table of Arrow.

        since_seconds: how long ago jobs and tasks were last heard of, batches planned, or what
            costs and queries used was counted; None: at any time.
        limit: at most so many rows; of jobs the newest.

        Raises:
            InvalidError: there is no such report, it is not one of tables, or the lake was deployed
                without what it is of.
            TableMissingError: with the nearest known name.
        """
        from lakebed.bootstrap.reporting.report_kinds import AskedReport
        from lakebed.bootstrap.reporting.reports import report_of

        asked = AskedReport(table=table, since_seconds=since_seconds, rows_max=limit)
        return report_of(self._app, name, asked)

    def dead_letters(self, *, queues: Sequence[str] = ()) -> list[QueueLetters]:
        """Return the queues, or some of them, with what was given up of each, by table.

        Raises: InvalidError, where there is no such queue.
        """
        return self._app.inspection.dead_letters().count(queues)

    def show_dead_letters(
        self, *, queues: Sequence[str] = (), table: str | None = None, limit: int = 10
    ) -> list[Letter]:
        """Return dead letters, with what is known of why they were given up.

        Raises: InvalidError, where there is no such queue.
        """
        return self._app.inspection.dead_letters().show(queues, table, letters_max=limit)

    def redrive(
        self, *, queues: Sequence[str] = (), table: str | None = None, limit: int = 100
    ) -> Redriven:
        """Send dead letters again, of each queue so many at the most; what could be done twice
        stays.

        Raises: InvalidError, where there is no such queue.
        """
        return self._app.inspection.redrive().run(queues, table, letters_max=limit)

    def fsck(
        self,
        table: str | None = None,
        *,
        deep: bool = False,
        on_progress: Callable[[str, int, int], None] = lambda _name, _done, _total: None,
    ) -> FsckReport:
        """Hold log, state, snapshots and objects against each other. Changes nothing.

        What is damaged, or refused by a disk or a permission, of one table is a finding, and the
        others are checked.

        table: None for the whole lake.
        deep: read every byte and every row.
        on_progress: called with a table's name, how many of its files are checked, and of how many.

        Raises:
            TableMissingError: with the nearest known name.
            NewerFormatError: a newer Lakebed wrote to it; this one cannot judge.
            DeniedError, UnavailableError: names of tables cannot be asked for; nothing was checked.
            StorageFullError: this machine has no room to look.
        """
        names = None if table is None else [self._app.catalog.entry(table).name]
        return self._app.inspection.fsck().run(names, deep=deep, on_progress=on_progress)

    def plan_repair(self, report: FsckReport, *, log: LogRepairAction | None = None) -> RepairPlan:
        """Return what could be done, and what not. log: a way on for logs that lost entries."""
        return self._app.inspection.repair().plan(report.findings, log=log)

    def repair(self, plan: RepairPlan) -> list[StepDone]:
        """Carry out a plan of `plan_repair`; then look again with `fsck`.

        Nothing that was committed is touched; each step says what it did, or why it was not done.
        Open tables again that were open before.
        """
        return self._app.inspection.repair().run(plan)

    def backup(
        self,
        directory: str | os.PathLike[str],
        *,
        objects: str | None = None,
        prune: bool = False,
        on_progress: Callable[[str, int, int], None] = lambda _name, _done, _total: None,
    ) -> LakeCopied:
        """Copy the lake into a directory, which becomes a lake. Again copies only what is new.

        Other processes may write meanwhile: each table is copied as it was when its copy began. A
        table that cannot be copied has a `problem` in the result, and the others are copied. Tables
        in quarantine are left out; the result names them.

        objects: where a new backup keeps its objects, as `connect` takes it.
        prune: remove tables from the backup that were dropped here.
        on_progress: called with a table's name, how many of its files are done, and of how many.

        Raises:
            InvalidError: the directory is the lake's own, or holds other things.
            ConflictError: another process copies into or from it. Nothing was changed.
        """
        from lakebed.bootstrap.backups import back_up

        return back_up(self._app, directory, objects=objects, prune=prune, on_progress=on_progress)

    def restore(
        self,
        directory: str | os.PathLike[str],
        *,
        on_progress: Callable[[str, int, int], None] = lambda _name, _done, _total: None,
    ) -> LakeCopied:
        """Copy a backup into this lake: a new one, or one that an earlier try began.

        Raises:
            InvalidError: there is no backup in the directory; this lake has another table under the
                name of one of the backup's, or is on AWS.
            ConflictError: another process copies into or from it. Nothing was changed.
        """
        from lakebed.bootstrap.backups import restore

        return restore(self._app, directory, on_progress=on_progress)
