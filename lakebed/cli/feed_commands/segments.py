"""`lakebed feed segments`: what was pushed into feeds and waits to be landed."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click
import msgspec

from lakebed.cli.feed_commands.printing import show_records
from lakebed.cli.program import (
    CommandGroup,
    Session,
    aligned,
    counted,
    pass_session,
    time_text,
)
from lakebed.errors import InvalidError

if TYPE_CHECKING:
    from lakebed.errors import LakebedError
    from lakebed.landing.push.waiting_segments import WaitingSegments

_LIMIT = click.option(
    "--limit", type=click.IntRange(1, 1_000_000), default=50, show_default=True, help="The first."
)


@click.group(
    cls=CommandGroup,
    examples="""
    lakebed feed segments list
    lakebed feed segments show orders --values
    """,
)
def segments() -> None:
    """Look at what was pushed into feeds and waits to be landed, and remove it."""


@segments.command(name="list", examples="lakebed feed segments list")
@pass_session
def list_(session: Session) -> None:
    """Show how much waits of each feed, also of those that were dropped.

    A segment is what one request pushed. A folder of which the lake defines no feed is shown by
    its id alone: its feed was dropped, or only a file defines it.
    """
    from lakebed.feed import FeedDefinitions

    with session.open() as lake:
        found = FeedDefinitions(lake).segments()
    rows = [(one.feed or "-", one.id, waiting_text(one.waiting)) for one in found]
    text = aligned(("FEED", "ID", "WAITING"), rows, empty="nothing was pushed")
    session.give(msgspec.to_builtins(found), text)


@segments.command(
    examples="""
    lakebed feed segments show orders
    lakebed feed segments show orders --values --limit 10 --json
    """
)
@click.argument("feed", metavar="FEED|ID")
@_LIMIT
@click.option("--values", is_flag=True, help="Show the records in them, instead.")
@pass_session
def show(session: Session, feed: str, *, limit: int, values: bool) -> None:
    """Show the segments of FEED that wait, or the records in them.

    Their names are by chance: the first are not the oldest. A segment that cannot be read is
    reported on stderr, and hides no other; then the exit code is that of its error.
    """
    from lakebed.feed import FeedDefinitions

    exit_code = 0

    def failed(segment: str, error: LakebedError) -> None:
        nonlocal exit_code
        exit_code = max(exit_code, error.exit_code)
        click.echo(f"failed: segment {segment}: {error.code()}: {error}", err=True)

    with session.open() as lake:
        definitions = FeedDefinitions(lake)
        if values:
            show_records(
                session,
                definitions.waiting_records(feed, limit=limit, failed=failed),
                values=True,
            )
            sys.exit(exit_code)
        found = list(definitions.segments_of(feed, limit=limit))
    rows = [
        (one.segment, f"{one.bytes:,}", "" if one.came is None else time_text(one.came))
        for one in found
    ]
    text = aligned(("SEGMENT", "BYTES", "CAME"), rows, empty="none")
    session.give(msgspec.to_builtins(found), text)


@segments.command(
    examples="""
    lakebed feed segments drop 0a1b2c3d4e5f60718293a4b5c6d7e8f9 --dry-run
    lakebed feed segments drop orders --although-defined --yes
    """
)
@click.argument("feed", metavar="FEED|ID")
@click.option("--although-defined", is_flag=True, help="Also of a feed that the lake defines.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--dry-run", is_flag=True, help="Say what would be removed, and remove nothing.")
@pass_session
def drop(session: Session, feed: str, *, although_defined: bool, yes: bool, dry_run: bool) -> None:
    """Remove what was pushed into FEED, which was dropped, and waits. It is lost then.

    Senders have heard that it is kept. So a feed that the lake defines is refused, unless you say
    so. End its receivers first: they would put more.
    """
    from lakebed.feed import FeedDefinitions

    with session.open() as lake:
        definitions = FeedDefinitions(lake)
        before = definitions.drop_segments(feed, although_defined=although_defined, dry_run=True)
        what = waiting_text(before)
        if dry_run:
            shown = {"would_remove": msgspec.to_builtins(before), "feed": feed}
            session.give(shown, f"would remove: {what}")
            return
        if not yes:
            _confirm(session, feed, f"remove for good: {what}?")
        done = definitions.drop_segments(feed, although_defined=although_defined)
    removed = f"{counted(done.count, 'segment')}, {done.bytes:,} bytes"
    session.give({"removed": msgspec.to_builtins(done), "feed": feed}, f"removed {removed}")


def waiting_text(waiting: WaitingSegments) -> str:
    """Return how much waits, and for how long."""
    text = f"{counted(waiting.count, 'segment')} waiting, {waiting.bytes:,} bytes"
    if waiting.oldest_seconds is not None:
        since = "the oldest for" if waiting.is_exact else "one for"
        text = f"{text}, {since} {waiting.oldest_seconds:,} s"
    return text if waiting.is_exact else f"at least {text}"


def _confirm(session: Session, feed: str, question: str) -> None:
    if session.as_json or not sys.stdin.isatty():
        raise InvalidError("this cannot be undone", feed=feed, hint="add --yes")
    click.confirm(question, abort=True, err=True)
