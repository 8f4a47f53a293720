"""`lakebed feed tap`: records as they come, and what would become of them."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from lakebed.cli.feed_commands.texts import feed_text
from lakebed.cli.program import Command, Session, pass_session


@click.command(
    cls=Command,
    examples="""
    lakebed feed tap orders --limit 5
    lakebed feed tap feeds.toml --connection orders-eu --from start
    """,
)
@click.argument("what", metavar="FEED|FILE")
@click.option("--connection", metavar="NAME", help="Decode as it does.  [default: the only one]")
@click.option(
    "--limit", type=click.IntRange(1, 1_000_000), default=10, show_default=True, help="Records."
)
@click.option(
    "--from",
    "begin",
    type=click.Choice(["committed", "start"]),
    default="committed",
    show_default=True,
    help="Begin behind what was committed, or where a feed begins.",
)
@click.option(
    "--wait",
    type=click.FloatRange(0, 3_600),
    default=1.0,
    show_default=True,
    metavar="SECONDS",
    help="End when no record came for so long.",
)
@pass_session
def tap(
    session: Session, what: str, *, connection: str | None, limit: int, begin: str, wait: float
) -> None:
    """Write what would become of the next records of FEED, or of a feed in FILE, as JSON lines.

    Nothing is committed, created, claimed or acknowledged. `verdict` is `row`, `filtered`, or why a
    record is no row. A feed without a connection is shown as it would be landed. Of a source
    without order, what was landed is read.
    """
    from lakebed.feed import FeedDefinitions
    from lakebed.user_files.json_text import json_lines

    file = Path(what)
    is_file = file.is_file() or file.suffix == ".toml"
    text = feed_text(file) if is_file else None
    out = sys.stdout.buffer
    with session.open() as lake:
        found = FeedDefinitions(lake).tap(
            None if is_file else what,
            text=text,
            connection=connection,
            limit=limit,
            from_start=begin == "start",
            wait_seconds=wait,
        )
        for batch in found:
            out.write(json_lines(batch))
            out.flush()
