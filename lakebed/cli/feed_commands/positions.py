"""`lakebed feed positions`, `ledger`, `gaps` and `windows`: how far feeds are, and what became of
their records."""

from __future__ import annotations

import getpass
from typing import TYPE_CHECKING

import click
import msgspec

from lakebed.cli.program import Command, CommandGroup, Session, aligned, pass_session, time_text

if TYPE_CHECKING:
    from lakebed.feeds.operating.position_admin import KeptPosition, LedgerRow
    from lakebed.feeds.operating.window_listing import KnownWindow

NO_POSITION = "none"

_FEED = click.option("--feed", metavar="ID", help="Only of this feed.  [default: all]")
_WHO = click.option(
    "--who", default=None, metavar="NAME", help="Who does it.  [default: your user name]"
)
_WHY = click.option("--why", required=True, metavar="TEXT", help="Why; the log keeps it.")


@click.group(
    cls=CommandGroup,
    examples="""
    lakebed feed positions list access_landing
    lakebed feed positions reset access_landing FEED/SPLIT --expect 900 --to 0 --why "bad parser"
    """,
)
def positions() -> None:
    """Look at positions of feeds, and move them."""


@positions.command("list", examples="lakebed feed positions list access_landing --json")
@click.argument("table")
@_FEED
@pass_session
def list_(session: Session, *, table: str, feed: str | None) -> None:
    """Show how far each source split was taken into TABLE."""
    with session.open() as lake:
        found = lake.table(table).positions(feed=feed)
    headings = ("position", "next", "revision", "owner", "event time", "errors in a row")
    session.give(msgspec.to_builtins(found), aligned(headings, map(_position_cells, found)))


@positions.command(
    examples="""
    lakebed feed positions reset access_landing FEED/SPLIT --expect 900 --to 0 --why "bad parser"
    """
)
@click.argument("table")
@click.argument("position", metavar="FEED/SPLIT")
@click.option("--expect", required=True, metavar="NEXT", help="What `list` shows; `none`: nothing.")
@click.option("--to", required=True, metavar="NEXT", help="The record that comes next.")
@_WHO
@_WHY
@pass_session
def reset(
    session: Session, *, table: str, position: str, expect: str, to: str, who: str | None, why: str
) -> None:
    """Let a source split of TABLE be read from another record on. Rows stay.

    A batch that is under way is refused, and its feed goes on there: records between are taken
    again, or left out. If the feed has gone on since you looked, nothing is changed.
    """
    feed, _, split = position.partition("/")
    with session.open() as lake:
        number = lake.table(table).reset_position(
            feed, split, to=_next(to), expects=_expected(expect), who=_user(who), why=why
        )
    session.give(
        {"position": position, "next": _next(to), "number": number},
        f"{position} goes on at {to} (entry {number})",
    )


@positions.command(
    examples="""
    lakebed feed positions delete access_landing FEED/SPLIT --expect 900 --why "topic is gone"
    """
)
@click.argument("table")
@click.argument("position", metavar="FEED/SPLIT")
@click.option(
    "--expect", required=True, metavar="NEXT", help="What `list` shows, or `damaged`: unreadable."
)
@_WHO
@_WHY
@pass_session
def delete(
    session: Session, *, table: str, position: str, expect: str, who: str | None, why: str
) -> None:
    """Forget a source split of TABLE. Rows stay.

    If its source has it, it is taken from the beginning. The watermark waits for it no more.
    """
    feed, _, split = position.partition("/")
    with session.open() as lake:
        number = lake.table(table).delete_position(
            feed, split, expects=_next(expect), who=_user(who), why=why
        )
    session.give(
        {"deleted": position, "number": number}, f"{position} is forgotten (entry {number})"
    )


@click.command(
    cls=Command,
    examples="""
    lakebed feed ledger access_landing
    lakebed feed ledger access_landing --feed ID --json
    """,
)
@click.argument("table")
@_FEED
@pass_session
def ledger(session: Session, *, table: str, feed: str | None) -> None:
    """Show what became of records taken into TABLE, by source split and hour of log time.

    Hours become days after three days, and days one line after a hundred.
    """
    with session.open() as lake:
        found = lake.table(table).ledger(feed=feed)
    headings = ("source split", "from", "read", "what became of them")
    session.give(msgspec.to_builtins(found), aligned(headings, map(_ledger_cells, found)))


@click.command(cls=Command, examples="lakebed feed gaps access_landing")
@click.argument("table")
@_FEED
@pass_session
def gaps(session: Session, *, table: str, feed: str | None) -> None:
    """Show records that sources of TABLE no longer had when they were asked for."""
    from lakebed.inspection.log_listing import one_line

    with session.open() as lake:
        found = lake.table(table).gaps(feed=feed)
    rows = [
        (
            f"{gap.feed}/{gap.source_split}",
            gap.first,
            gap.end,
            str(gap.number),
            one_line(gap.reason),
        )
        for gap in found
    ]
    headings = ("source split", "wanted", "oldest there", "entry", "reason")
    session.give(msgspec.to_builtins(found), aligned(headings, rows, empty="none"))


@click.command(
    cls=Command,
    examples="""
    lakebed feed windows trips --sealed
    lakebed feed windows trips --feed ID --json
    """,
)
@click.argument("table")
@_FEED
@click.option("--sealed/--open", default=None, help="Only windows that are, or are not, sealed.")
@click.option(
    "--limit", type=click.IntRange(1, 1_000_000), default=50, show_default=True, help="The last."
)
@pass_session
def windows(
    session: Session, *, table: str, feed: str | None, sealed: bool | None, limit: int
) -> None:
    """Show rows of TABLE by window of event time, and which windows are sealed.

    The rows of a sealed window are all there as of its log entry, but for late ones. If these are
    accepted, they make the next revision.
    """
    with session.open() as lake:
        found = lake.table(table).windows(feed=feed, sealed=sealed)[-limit:]
    headings = ("feed", "from", "to", "rows", "late", "sealed by", "revision", "as of")
    session.give(msgspec.to_builtins(found), aligned(headings, map(_window_cells, found)))


COMMANDS: tuple[click.Command, ...] = (positions, ledger, gaps, windows)
"""Commands of `lakebed feed` that show positions, ledgers, gaps and windows."""


def _position_cells(kept: KeptPosition) -> tuple[str, ...]:
    name = f"{kept.feed}/{kept.source_split}"
    at = "" if kept.event_time is None else time_text(kept.event_time)
    owner, errors = str(kept.owner or ""), str(kept.errors_in_row or "")
    return name, str(kept.next), str(kept.revision), owner, at, errors


def _ledger_cells(row: LedgerRow) -> tuple[str, ...]:
    since = time_text(row.at) if row.at else "before that"
    return f"{row.feed}/{row.source_split}", since, f"{row.tally.read:,}", str(row.tally)


def _window_cells(one: KnownWindow) -> tuple[str, ...]:
    since, to = ("" if at is None else time_text(at) for at in (one.start, one.end))
    entries = (str(one.sealed or ""), str(one.revision or ""), str(one.number or ""))
    return one.feed, since or "before that", to, f"{one.rows:,}", f"{one.late:,}", *entries


def _next(text: str) -> int | str:
    return int(text) if text.isascii() and text.isdigit() else text


def _expected(text: str) -> int | str | None:
    return None if text == NO_POSITION else _next(text)


def _user(given: str | None) -> str:
    if given is not None:
        return given
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container's user may have no name
        return "unknown"
