"""`lakebed feed where` and `verify`: what became of positions of a feed that is landed."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click
import msgspec

from lakebed.cli.program import Command, Session, aligned, counted, pass_session, time_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lakebed.landing.find_record import RecordInTable

EXIT_FINDINGS = 2


@click.command(
    cls=Command,
    examples="""
    lakebed feed where orders orders.eu/3 90017
    lakebed feed where orders orders.eu/3 90017 --json
    """,
)
@click.argument("feed")
@click.argument("source_split", metavar="SPLIT")
@click.argument("position", type=click.IntRange(0))
@pass_session
def where(session: Session, feed: str, source_split: str, position: int) -> None:
    """Show what became of the record of FEED at a position: log entries, files and row groups.

    In the landing table, and in the table of each connection: the entry that took the position, as
    far back as the log goes (several after an operator moved a position back, or a replay), and
    the files that hold its rows now, also after compaction. Rows of a connection are found where
    they say which record they are of: `lineage = true`.
    """
    from lakebed.feed import FeedDefinitions

    with session.open() as lake:
        found = FeedDefinitions(lake).where(feed, source_split, position)
    rows = [row for one in found for row in _found_rows(one)]
    headings = ("TABLE", "ENTRY", "AT", "FROM", "TO", "ROWS", "FILE", "ROW GROUP")
    session.give(msgspec.to_builtins(found), aligned(headings, rows, empty="no entry took it"))


def _found_rows(found: RecordInTable) -> Iterator[tuple[str, ...]]:
    name = f"{found.connection}: {found.table}" if found.connection else found.table
    for one in found.entries:
        stored = "gap" if one.is_gap else str(one.stored)
        at = time_text(one.at)
        yield name, str(one.number), at, str(one.begin), str(one.end), stored, "", ""
    for file in found.files:
        yield name, "", "", "", "", str(file.rows), file.path, str(file.row_group)
    if found.entries and not found.has_lineage:
        yield name, "", "", "", "", "", "not known: no lineage", ""


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
