"""`lakebed feed quarantine`: records of which no row could be made, shown, replayed, dropped."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from lakebed.cli.feed_commands.failures import ShownFailures
from lakebed.cli.feed_commands.payloads import escaped, payload_json, payload_text
from lakebed.cli.feed_commands.texts import feed_text
from lakebed.cli.program import (
    CommandGroup,
    Session,
    aligned,
    confirm_clearing,
    counted,
    pass_session,
    time_text,
)
from lakebed.cli.progress import ProgressLine
from lakebed.cli.work import stop_signals

if TYPE_CHECKING:
    from lakebed.feeds.run_feeds import FeedDone
    from lakebed.landing.quarantine_listing import QuarantinedRecord


@click.group(
    cls=CommandGroup,
    examples="""
    lakebed feed quarantine show orders
    lakebed feed quarantine show orders --connection orders-eu --values --json
    """,
)
def quarantine() -> None:
    """Look at records of which no row could be made, and take them once more."""


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


@quarantine.command(
    examples="""
    lakebed feed quarantine replay orders
    lakebed feed quarantine replay orders --connection orders-eu
    lakebed feed quarantine replay orders --file feeds.toml
    """
)
@click.argument("feed")
@click.option("--connection", metavar="NAME", help="Only of this one.")
@click.option(
    "--file", type=click.Path(path_type=Path), help="The file that defines FEED, if one does."
)
@pass_session
def replay(session: Session, feed: str, *, connection: str | None, file: Path | None) -> None:
    """Take the records in quarantine of FEED once more, by its definitions of now.

    Apply the mended definition first, or mend the table. What is a row now gets into the table,
    with the source split and the position that it had; the rest stays. It may be killed at any
    time, and the feed may run meanwhile: no record is there twice.
    """
    from lakebed.feed import FeedDefinitions

    failures = ShownFailures(session, "connection")
    with (
        session.open() as lake,
        ProgressLine(silent=session.as_json) as line,
        stop_signals() as stopped,
    ):
        found = FeedDefinitions(lake).replay(
            feed,
            text=None if file is None else feed_text(file),
            connection=connection,
            should_stop=stopped.is_set,
            on_progress=lambda done: line.show(_replayed(done)),
            failed=failures.add,
        )
        line.clear()
    session.give(msgspec.to_builtins(found), "\n".join(map(_replayed, found)) or "none")
    sys.exit(failures.exit_code)


@quarantine.command(
    examples="""
    lakebed feed quarantine drop orders --dry-run
    lakebed feed quarantine drop orders --yes
    """
)
@click.argument("feed")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--dry-run", is_flag=True, help="Say what would be removed, and remove nothing.")
@pass_session
def drop(session: Session, feed: str, *, yes: bool, dry_run: bool) -> None:
    """Remove all records in quarantine of FEED, for good. Their counts stay in the ledger."""
    from lakebed.feed import FeedDefinitions

    with session.open() as lake:
        definitions = FeedDefinitions(lake)
        table = definitions.quarantine_table(feed)
        (before,) = lake.status(table)
        about = "" if before.rows_exact else "about "
        what = f"{about}{counted(before.rows, 'row')} of table {table}"
        if dry_run:
            session.give({"would_clear": table, "rows": before.rows}, f"would remove {what}")
            return
        confirm_clearing(session, yes=yes, question=f"remove {what}?", table=table)
        definitions.drop_quarantine(feed)
    session.give({"cleared": table, "rows": before.rows}, f"removed {what}")


def _replayed(done: FeedDone) -> str:
    tally = done.tally
    return (
        f"{done.name}: {counted(tally.read, 'record')} replayed, {tally.stored:,} into"
        f" {done.table}, {tally.quarantined:,} still in quarantine"
    )


def _as_json(one: QuarantinedRecord, *, values: bool) -> dict[str, Any]:
    shown: dict[str, Any] = msgspec.structs.asdict(one)
    for name in ("value", "key"):
        payload = shown.pop(name)
        if values:
            shown |= payload_json(name, payload)
    return shown


def _cells(one: QuarantinedRecord, *, values: bool) -> tuple[str, ...]:
    at = "" if one.time is None else time_text(one.time)
    texts = (one.connection, one.source_split, str(one.position), one.verdict, at, one.detail or "")
    cells = tuple(map(escaped, texts))
    return (*cells, payload_text(one.value)) if values else cells
