"""`lakebed feed quarantine`: records of which no row could be made."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import click
import msgspec

from lakebed.cli.program import CommandGroup, Session, aligned, pass_session, time_text

if TYPE_CHECKING:
    from lakebed.landing.quarantine_listing import QuarantinedRecord

SHOWN_MAX = 200
"""Characters of a value in a line for people."""


@click.group(
    cls=CommandGroup,
    examples="""
    lakebed feed quarantine show orders
    lakebed feed quarantine show orders --connection orders-eu --values --json
    """,
)
def quarantine() -> None:
    """Look at records of which no row could be made."""


@quarantine.command(
    examples="""
    lakebed feed quarantine show orders
    lakebed feed quarantine show orders --connection orders-eu --values --json
    """
)
@click.argument("feed")
@click.option("--connection", metavar="NAME", help="Only of this one, by name or id.")
@click.option(
    "--limit", type=click.IntRange(1, 1_000_000), default=50, show_default=True, help="The first."
)
@click.option("--values", is_flag=True, help="Show what the records hold, too.")
@pass_session
def show(session: Session, feed: str, *, connection: str | None, limit: int, values: bool) -> None:
    """Show the records in quarantine of FEED, by connection, source split and position.

    With --json as JSON lines: a value that is UTF-8 as `value`, another as `value_base64`. The
    table FEED_quarantine has them all: `lakebed query` answers more.
    """
    from lakebed.feed import FeedDefinitions

    with session.open() as lake:
        found = FeedDefinitions(lake).quarantined(
            feed, connection=connection, limit=limit, with_values=values
        )
        if session.as_json:
            for one in found:
                click.echo(json.dumps(_as_json(one, values=values)))
            return
        rows = [_cells(one, values=values) for one in found]
    headings = ("CONNECTION", "SOURCE SPLIT", "POSITION", "VERDICT", "TIME", "WHY")
    click.echo(aligned((*headings, "VALUE") if values else headings, rows, empty="none"))


def _as_json(one: QuarantinedRecord, *, values: bool) -> dict[str, Any]:
    shown: dict[str, Any] = msgspec.structs.asdict(one)
    for name in ("value", "key"):
        payload = shown.pop(name)
        if values:
            shown |= _payload(name, payload)
    return shown


def _payload(name: str, payload: bytes | None) -> dict[str, str | None]:
    try:
        return {name: None if payload is None else payload.decode()}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(payload or b"").decode()}


def _cells(one: QuarantinedRecord, *, values: bool) -> tuple[str, ...]:
    at = "" if one.time is None else time_text(one.time)
    texts = (one.connection, one.source_split, str(one.position), one.verdict, at, one.detail or "")
    cells = tuple(map(_shown, texts))
    return (*cells, _value_text(one.value)) if values else cells


def _value_text(value: bytes | None) -> str:
    if value is None:
        return "none"
    ((name, text),) = _payload("value", value[: 4 * SHOWN_MAX]).items()
    text = _shown(text or "")[:SHOWN_MAX]
    return text if name == "value" else f"base64 {text}"


def _shown(text: str) -> str:
    """Return a text in one line, with all escaped that a terminal may obey."""
    return text if text.isprintable() else text.encode("unicode_escape").decode()
