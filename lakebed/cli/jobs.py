"""`lakebed jobs` and `lakebed redrive`: what became of jobs, and what was given up sent again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click
import msgspec

from lakebed.cli.program import Command, Session, counted, pass_session, time_text
from lakebed.ports.job_tracker import JOB_EVENTS

if TYPE_CHECKING:
    from lakebed.ports.job_tracker import JobReport

HEADINGS = ("when", "kind", "what", "rows", "rows/s", "entry", "run", "job", "reason")


@click.command(
    cls=Command,
    examples="""
    lakebed jobs trips
    lakebed jobs trips --event failed --event rejected --since 3600
    lakebed jobs trips --job 2013-01-01
    lakebed jobs trips --json
    """,
)
@click.argument("table")
@click.option("--job", help="All runs of this job, oldest first.")
@click.option(
    "--event",
    "events",
    type=click.Choice(JOB_EVENTS),
    multiple=True,
    help="Only jobs whose newest report tells of this. May be repeated.",
)
@click.option("--since", type=click.FloatRange(min=0), help="Reports of the last so many seconds.")
@click.option(
    "--limit", type=click.IntRange(min=1, max=10_000), default=20, help="At most so many."
)
@pass_session
def jobs(
    session: Session,
    table: str,
    *,
    job: str | None,
    events: Sequence[str],
    since: float | None,
    limit: int,
) -> None:
    """List the jobs of TABLE, the newest first: what became of each, when, how fast.

    What is told are hints; truth is in the state: `lakebed status` shows jobs that hold files.
    """
    with session.open() as lake:
        found = lake.table(table).jobs(job=job, events=events, since_seconds=since, limit=limit)
    session.give(msgspec.to_builtins(found), _lines(found))


@click.command(
    cls=Command,
    examples="""
    lakebed redrive
    lakebed redrive --limit 1000
    """,
)
@click.option(
    "--limit", type=click.IntRange(min=1, max=10_000), default=100, help="At most so many."
)
@pass_session
def redrive(session: Session, *, limit: int) -> None:
    """Send queued commits again that were given up. What is too old to be done once is refused."""
    with session.open() as lake:
        done = lake.redrive(limit=limit)
    sent = f"{counted(done.sent, 'message of commits', 'messages of commits')} sent again"
    refused = [f"refused: {reason}" for reason in done.refused]
    session.give(msgspec.to_builtins(done), "\n".join([*refused, sent]))


def _lines(found: Sequence[JobReport]) -> str:
    if not found:
        return "no jobs"
    rows = [HEADINGS, *map(_row, found)]
    widths = [max(len(row[n]) for row in rows) for n in range(len(HEADINGS))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )


def _row(report: JobReport) -> tuple[str, ...]:
    speed = round(report.rows_per_second)
    return (
        time_text(report.at),
        report.kind,
        report.event,
        f"{report.rows:,}" if report.rows else "",
        f"{speed:,}" if speed else "",
        str(report.number or ""),
        report.run,
        report.job,
        report.reason,
    )
