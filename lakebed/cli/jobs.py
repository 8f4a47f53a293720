"""`lakebed jobs`, `tasks`: what became of work."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypedDict

import click
import msgspec

from lakebed.cli.program import (
    EXIT_BUG,
    Command,
    CommandGroup,
    Session,
    aligned,
    counted,
    pass_session,
    time_text,
)
from lakebed.ports.job_tracker import JOB_EVENTS

if TYPE_CHECKING:
    from lakebed.ports.job_tracker import JobReport, TaskReport
    from lakebed.tasks.start_by_hand import TasksStarted


class JobsAsked(TypedDict):
    """The options of a user's request to see jobs."""

    job: str | None
    events: Sequence[str]
    since_seconds: float | None
    limit: int


HEADINGS = ("when", "kind", "what", "rows", "left out", "rows/s", "entry", "run", "job", "reason")
TASK_KINDS = ("compaction", "ingest")
"""Kinds of tasks that can be started by hand."""
TASK_HEADINGS = ("started", "last heard of", "kind", "jobs", "ended", "task")


@click.command(
    cls=Command,
    examples="""
    lakebed jobs trips
    lakebed jobs trips --event failed --event rejected --since 3600
    lakebed jobs trips --job 2013-01-01
    lakebed jobs trips --json
    lakebed jobs
    """,
)
@click.argument("table", required=False)
@click.option("--job", help="All runs of this job, oldest first.")
@click.option(
    "--event",
    "events",
    type=click.Choice(JOB_EVENTS),
    multiple=True,
    help="Only jobs whose newest report says this. May be repeated.",
)
@click.option(
    "--since", type=click.FloatRange(min=0), help="Only reports at most this many seconds old."
)
@click.option(
    "--limit", type=click.IntRange(min=1, max=10_000), default=20, help="At most so many."
)
@pass_session
def jobs(
    session: Session,
    table: str | None,
    *,
    job: str | None,
    events: Sequence[str],
    since: float | None,
    limit: int,
) -> None:
    """List the jobs of TABLE, the newest first: what became of each, when, how fast. Without a
    TABLE: messages that were refused because they name no table that there is.

    Reports are hints; truth is in the state: `lakebed status` shows jobs that hold files.
    """
    with session.open() as lake:
        asked: JobsAsked = {"job": job, "events": events, "since_seconds": since, "limit": limit}
        found = lake.nameless_jobs(**asked) if table is None else lake.table(table).jobs(**asked)
    session.give(msgspec.to_builtins(found), aligned(HEADINGS, map(_row, found)))


@click.command(
    cls=Command,
    name="keep-jobs",
    examples="""
    lakebed keep-jobs
    lakebed keep-jobs --days 90
    lakebed sql 'SELECT "table", count(*), sum(rows) FROM "lakebed-jobs" GROUP BY 1'
    lakebed sql 'SELECT kind, sum(counts['"'"'s3_get'"'"']) FROM "lakebed-usage" GROUP BY 1'
    """,
)
@click.option(
    "--days",
    type=click.IntRange(1, 3_650),
    default=400,
    show_default=True,
    help="For which a new table keeps them.",
)
@pass_session
def keep_jobs(session: Session, *, days: int) -> None:
    """Keep the jobs that end on each day as rows of the table lakebed-jobs, and what work used in
    each hour as rows of the table lakebed-usage.

    Makes the tables if there are none, and takes in the days of the last week. Later days are taken
    in by `lakebed run`; of an instance by a schedule where it was deployed with `history_days`.
    Each day is kept once. Drop a table to end it.
    """
    with session.open() as lake:
        kept = lake.keep_jobs(days=days)
    said = f"{counted(kept.days, 'day')} kept, {counted(kept.jobs, 'job')}"
    said += f", {counted(kept.hours, 'hour')} of usage"
    session.give(msgspec.to_builtins(kept), said)


@click.group(
    cls=CommandGroup,
    invoke_without_command=True,
    examples="""
    lakebed tasks
    lakebed tasks --json
    lakebed --at dev tasks start compaction --count 4
    """,
)
@click.option(
    "--limit", type=click.IntRange(min=1, max=10_000), default=20, help="At most so many."
)
@pass_session
@click.pass_context
def tasks(context: click.Context, session: Session, *, limit: int) -> None:
    """List workers, the newest first: since when, how many jobs, and whether they have ended."""
    if context.invoked_subcommand is not None:
        return
    with session.open() as lake:
        found = lake.tasks(limit=limit)
    session.give(msgspec.to_builtins(found), aligned(TASK_HEADINGS, map(_task_row, found)))


@tasks.command(
    examples="""
    lakebed tasks start compaction
    lakebed --at dev tasks start compaction --count 4
    lakebed --at dev tasks start ingest
    """,
)
@click.argument("kind", type=click.Choice(TASK_KINDS))
@click.option(
    "--count", type=click.IntRange(1, 20), default=1, show_default=True, help="So many tasks."
)
@pass_session
def start(session: Session, kind: str, *, count: int) -> None:
    """Start tasks of a KIND now, without waiting for the schedule.

    Of an instance on AWS they run on ECS, at most as many at one time as its settings allow; each
    ends by itself when its queue is empty. Of a directory they are processes of this machine that
    create compaction jobs and run them, and the command waits for their end.
    """
    with session.open() as lake:
        done = lake.start_tasks(kind, count=count)
    session.give(msgspec.to_builtins(done), _started_text(done))
    sys.exit(EXIT_BUG if done.failed else 0)


def _started_text(done: TasksStarted) -> str:
    if done.jobs_done is None:
        before = f", {counted(done.running, 'task')} ran before" if done.running else ""
        return f"{counted(done.started, 'task')} started{before}"
    failed = f", {counted(done.failed, 'process', 'processes')} failed" if done.failed else ""
    jobs = counted(done.jobs_done, "compaction job")
    return f"{counted(done.started, 'process', 'processes')} ended, {jobs} done{failed}"


def _row(report: JobReport) -> tuple[str, ...]:
    speed = round(report.rows_per_second)
    return (
        time_text(report.at),
        report.kind,
        report.event,
        f"{report.rows:,}" if report.rows else "",
        f"{report.filtered:,}" if report.filtered else "",
        f"{speed:,}" if speed else "",
        str(report.number or ""),
        report.run,
        report.job,
        report.reason,
    )


def _task_row(report: TaskReport) -> tuple[str, ...]:
    return (
        time_text(report.started),
        time_text(report.at),
        report.kind,
        f"{report.jobs:,}",
        "yes" if report.ended else "",
        report.task,
    )
