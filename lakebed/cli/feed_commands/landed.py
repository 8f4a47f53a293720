"""`lakebed feed where` and `verify`: what became of positions of a feed that is landed."""

from __future__ import annotations

import sys

import click
import msgspec

from lakebed.cli.program import Command, Session, aligned, counted, pass_session, time_text

EXIT_FINDINGS = 2


@click.command(cls=Command, examples="lakebed feed where orders orders.eu/3 90017")
@click.argument("feed")
@click.argument("source_split", metavar="SPLIT")
@click.argument("position", type=click.IntRange(0))
@pass_session
def where(session: Session, feed: str, source_split: str, position: int) -> None:
    """Show which log entry of FEED's landing table took a position, as far back as the log goes.

    There are several after an operator moved a position back.
    """
    from lakebed.feed import FeedDefinitions

    with session.open() as lake:
        found = FeedDefinitions(lake).where_landed(feed, source_split, position)
    rows = [
        (str(t.number), time_text(t.at), str(t.begin), str(t.end), "gap" if t.is_gap else t.stored)
        for t in found
    ]
    headings = ("ENTRY", "AT", "FROM", "TO", "ROWS")
    text = aligned(headings, [[*map(str, row)] for row in rows], empty="no entry took it")
    session.give(msgspec.to_builtins(found), text)


@click.command(cls=Command, examples="lakebed feed verify orders")
@click.argument("feed")
@pass_session
def verify(session: Session, feed: str) -> None:
    """Compare what commits of FEED's landing table say that they took with the rows that are there.

    It reads the log, as far back as it goes, and two columns of the table. Positions that no commit
    took, rows that are missing, not expected or there twice are shown; then the exit code is 2.
    Retention removes rows, and ingest adds some: both are seen here.
    """
    from lakebed.feed import FeedDefinitions

    with session.open() as lake:
        found = FeedDefinitions(lake).verify_landing(feed)
    rows = [
        (
            one.problem,
            one.source_split,
            str(one.begin),
            str(one.end),
            str(one.rows),
            str(one.counted),
        )
        for one in found.findings
    ]
    commits = counted(found.commits, "commit")
    good = f"{found.table}: {commits} from entry {found.oldest} on, all rows are there once"
    headings = ("PROBLEM", "SOURCE SPLIT", "FROM", "TO", "ROWS", "COUNTED")
    session.give(msgspec.to_builtins(found), aligned(headings, rows, empty=good))
    sys.exit(EXIT_FINDINGS if found.findings else 0)
