"""`lakebed feed status`: how feeds do, and who works on them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import msgspec

from lakebed.cli.feed_commands.segments import waiting_text
from lakebed.cli.program import Command, Session, aligned, counted, pass_session, time_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lakebed.feeds.operating.feed_status import FeedsStatus, FeedStatus

_HEADINGS = (
    "FEED", "INTO", "STATE", "VERSION", "WORKERS", "SPLITS", "BEHIND", "LAG", "WAITING", "READ",
    "STORED", "BAD", "WATERMARK", "WHY",
)  # fmt: skip


@click.command(
    cls=Command,
    examples="""
    lakebed feed status
    lakebed feed status orders --json
    """,
)
@click.argument("name", metavar="FEED", required=False)
@click.option(
    "--listen",
    type=click.FloatRange(0, 600),
    default=4.0,
    show_default=True,
    metavar="SECONDS",
    help="For workers that are silent, at the most.",
)
@pass_session
def status(session: Session, name: str | None, *, listen: float) -> None:
    """Show how FEED does, or all feeds: a line for its landing, and for each connection.

    Counts are those of the table, since the beginning. WORKERS, SPLITS, BEHIND, LAG (seconds
    that the oldest record waits for its commit) and WAITING (bytes read and not committed) come
    from workers that live: those that beat while it listens.
    BAD records are in the quarantine, or were skipped. Of what was pushed and waits to be landed a
    line says how much that is; and of what waits on the disks of workers, by a policy that spills.
    """
    from lakebed.feed import FeedDefinitions

    with session.open() as lake:
        found = FeedDefinitions(lake).status(name, listen_seconds=listen)
    rows = [row for one in found.feeds for row in _rows(one)]
    table = aligned(_HEADINGS, rows, empty="no feed yet: `lakebed feed apply FILE`")
    lines = [table, *_pushed_lines(found), *_spool_lines(found), _workers_text(found)]
    session.give(msgspec.to_builtins(found), "\n".join(lines))


def _rows(of: FeedStatus) -> Iterator[tuple[str, ...]]:
    feed, standing = of.standing.feed, of.standing.standing
    for pipe in of.pipes:
        work, taken = pipe.work, pipe.taken
        congested = f"congested: {work.congested_by}" if work.congested_by else ""
        why = pipe.failed or work.failing or taken.missing or congested
        yield (
            feed,
            pipe.table if pipe.kind == "feed" else f"{pipe.name}: {pipe.table}",
            "failed" if pipe.failed and standing == "failed" else of.standing.wanted,
            str(pipe.version),
            f"{len(work.workers):,}",
            f"{work.splits:,}",
            f"{work.behind:,}",
            f"{work.lag_seconds:,.0f}",
            f"{work.waiting:,}",
            f"{taken.tally.read:,}",
            f"{taken.tally.stored:,}",
            f"{taken.tally.quarantined:,}",
            "-" if taken.watermark is None else time_text(taken.watermark),
            why if why.isprintable() else ascii(why),
        )


def _pushed_lines(found: FeedsStatus) -> Iterator[str]:
    for one in found.feeds:
        pushed = one.pushed
        if pushed is not None and pushed.count:
            yield f"{one.standing.feed}: {waiting_text(pushed)}"


def _spool_lines(found: FeedsStatus) -> Iterator[str]:
    for one in found.feeds:
        for pipe in one.pipes:
            if pipe.work.spooled:
                yield (
                    f"{one.standing.feed} into {pipe.table}: {pipe.work.spooled:,} bytes wait in"
                    " spools, on disks of workers"
                )


def _workers_text(found: FeedsStatus) -> str:
    living = sum(worker.lives for worker in found.workers)
    silent = [worker.worker for worker in found.workers if not worker.lives]
    text = f"{counted(living, 'worker lives', 'workers live')}"
    if found.wanted_workers:
        text = f"{text} of {found.wanted_workers:,} that are wanted"
    return f"{text}, silent: {', '.join(silent)}" if silent else text
