"""`lakebed jobs`, `tasks`: what became of work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypedDict

import click
import msgspec

from lakebed.cli.program import Command, Session, aligned, pass_session, time_text
from lakebed.ports.job_tracker import JOB_EVENTS

if TYPE_CHECKING:
    from lakebed.ports.job_tracker import JobReport, TaskReport


class JobsAsked(TypedDict):
    """What people want to know of jobs."""

    job: str | None
    events: Sequence[str]
    since_seconds: float | None
    limit: int


HEADINGS = ("when", "kind", "what", "rows", "left out", "rows/s", "entry", "run", "job", "reason")
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
    examples="""
    lakebed tasks
    lakebed tasks --json
    """,
)
@click.option(
    "--limit", type=click.IntRange(min=1, max=10_000), default=20, help="At most so many."
)
@pass_session
def tasks(session: Session, *, limit: int) -> None:
    """List workers, the newest first: since when, how many jobs, and whether they have ended."""
    with session.open() as lake:
        found = lake.tasks(limit=limit)
    session.give(msgspec.to_builtins(found), aligned(TASK_HEADINGS, map(_task_row, found)))


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
