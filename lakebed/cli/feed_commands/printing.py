"""`lakebed feed print`: records as they were landed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from lakebed.cli.feed_commands.payloads import escaped, payload_json, payload_text
from lakebed.cli.program import Command, Session, aligned, pass_session, time_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lakebed.landing.landing_listing import LandedRecord


@click.command(
    cls=Command,
    name="print",
    examples="""
    lakebed feed print orders
    lakebed feed print orders orders:3@E_WGnqV7T --from 90000 --to 90010 --values
    lakebed feed print orders --values --limit 1000000 --json
    """,
)
@click.argument("feed")
@click.argument("source_split", metavar="SPLIT", required=False)
@click.option("--from", "begin", type=click.IntRange(0), default=0, help="The first position.")
@click.option("--to", "end", type=click.IntRange(0), help="The first that is not shown.")
@click.option(
    "--limit", type=click.IntRange(1, 1_000_000), default=50, show_default=True, help="The first."
)
@click.option("--values", is_flag=True, help="Show what the records hold, too.")
@pass_session
def print_(
    session: Session,
    feed: str,
    source_split: str | None,
    *,
    begin: int,
    end: int | None,
    limit: int,
    values: bool,
) -> None:
    """Show the records of FEED as they were landed, by source split and position.

    With --json as JSON lines: a value that is UTF-8 as `value`, another as `value_base64`. The
    table FEED_landing has them all: `lakebed query` answers more. What was pushed and waits to be
    landed is shown by `lakebed feed segments show`.
    """
    from lakebed.feed import FeedDefinitions

    with session.open() as lake:
        found = FeedDefinitions(lake).landed(
            feed, source_split, begin=begin, end=end, limit=limit, with_values=values
        )
        show_records(session, found, values=values)


def show_records(session: Session, found: Iterable[LandedRecord], *, values: bool) -> None:
    """Show records for people, or as JSON lines."""
    if session.as_json:
        for one in found:
            click.echo(json.dumps(_as_json(one, values=values)))
        return
    headings = ("SOURCE SPLIT", "POSITION", "TIME", *(("KEY", "VALUE") if values else ()))
    click.echo(aligned(headings, (_cells(one, values=values) for one in found), empty="none"))


def _as_json(one: LandedRecord, *, values: bool) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "source_split": one.source_split,
        "position": one.position,
        "time": one.time,
    }
    if values:
        shown |= payload_json("value", one.value) | payload_json("key", one.key)
        shown["headers"] = [
            {"name": name, **payload_json("value", value)} for name, value in one.headers
        ]
    return shown


def _cells(one: LandedRecord, *, values: bool) -> tuple[str, ...]:
    at = "" if one.time is None else time_text(one.time)
    cells = (escaped(one.source_split), str(one.position), at)
    key = "" if one.key is None else payload_text(one.key)
    return (*cells, key, payload_text(one.value)) if values else cells
