"""`lakebed changes`: what each commit did to the rows of a table."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import click
import msgspec

from lakebed.cli.program import Command, Session, arguments_as, counted, pass_session, time_text
from lakebed.errors import InvalidError
from lakebed.model.versions import AsOf

if TYPE_CHECKING:
    from lakebed.face.followed_table import Follower, RowChange
    from lakebed.model.ranges import Range
    from lakebed.table import Table

POLL_SECONDS = 1.0
ACKNOWLEDGED_AT_ONCE = 100
"""Changes for which a follower is moved by one log entry."""


class ChangesArguments(msgspec.Struct, frozen=True, kw_only=True):
    """The arguments of `lakebed changes`."""

    table: str
    after: str | None
    follower: str | None
    follow: bool
    limit: int | None
    rows: bool
    drop: bool


@click.command(
    cls=Command,
    examples="""
    lakebed changes trips
    lakebed changes trips --after 41 --rows
    lakebed changes trips --follower mirror --limit 10
    lakebed changes trips --follower mirror --follow --rows
    lakebed changes trips --follower mirror --drop
    """,
)
@click.argument("table")
@click.option(
    "--after",
    metavar="VERSION",
    help="Only changes behind this version: a log number, a time, a tag; 0: all that is kept."
    "  [default: 0, or where the follower stands]",
)
@click.option(
    "--follower",
    metavar="NAME",
    help="Keep in the table how far this name has read; a new one begins at the newest version.",
)
@click.option("--follow", is_flag=True, help="Wait for more, until stopped.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="At most so many changes.")
@click.option("--rows", is_flag=True, help="Write the rows, too, as JSON lines behind each change.")
@click.option("--drop", is_flag=True, help="Forget the follower.")
@pass_session
@arguments_as(ChangesArguments)
def changes(session: Session, given: ChangesArguments) -> None:
    """Write what each commit did to the rows of TABLE, in the order of commits.

    Rows that were taken in, deletes, and clears; compactions are no changes.

    What a follower was shown is acknowledged when it is written; after a kill some may come again.
    """
    with session.open() as lake:
        table = lake.table(given.table)
        if given.drop:
            _drop(session, table, given)
            return
        follower = _follower(table, given)
        for shown, change in enumerate(_found(table, follower, given), 1):
            _show(session, change, rows=given.rows)
            if follower is not None and (shown % ACKNOWLEDGED_AT_ONCE == 0 or shown == given.limit):
                follower.acknowledge(change)
            if shown == given.limit:
                return


def _follower(table: Table, given: ChangesArguments) -> Follower | None:
    if given.follower is None:
        return None
    return table.follow(given.follower, after=None if given.after is None else _after(given))


def _after(given: ChangesArguments) -> AsOf:
    return 0 if given.after in {None, "0"} else str(given.after)


def _drop(session: Session, table: Table, given: ChangesArguments) -> None:
    if given.follower is None:
        raise InvalidError("no follower is named", hint="add --follower NAME")
    table.drop_follower(given.follower)
    value = {"table": given.table, "dropped": given.follower}
    session.give(value, f"dropped follower {given.follower} of {given.table}")


def _found(table: Table, follower: Follower | None, given: ChangesArguments) -> Iterator[RowChange]:
    """Yield changes, with --follow for ever."""
    after: AsOf = _after(given)
    while True:
        last: RowChange | None = None
        for change in table.changes(after=after) if follower is None else follower:
            last = change
            yield change
        if follower is not None and last is not None:
            follower.acknowledge(last)
        if not given.follow:
            return
        if follower is not None:
            follower.renew()
        after = after if last is None else last.number
        table.wait(POLL_SECONDS)


def _show(session: Session, change: RowChange, *, rows: bool) -> None:
    value: dict[str, object] = {
        "number": change.number,
        "at": time_text(change.at),
        "change": change.kind,
        "job": change.job,
        "rows": change.rows,
    }
    if change.ranges:
        value["ranges"] = [_shown_ranges(one) for one in change.ranges]
    does = {"rows": "", "delete": "deleted ", "clear": "cleared"}[change.kind]
    if change.kind != "clear":
        does += counted(change.rows, "row")
    text = f"{change.number:>8}  {time_text(change.at)}  {does}  {change.job}"
    click.echo(json.dumps(value) if session.as_json or rows else text)
    if rows:
        from lakebed.cli.row_commands.row_formats import write_rows

        sys.stdout.flush()
        write_rows(change.read(), "jsonl", sys.stdout.buffer)
    sys.stdout.flush()


def _shown_ranges(ranges: Mapping[str, Range]) -> dict[str, dict[str, object]]:
    """Return ranges by key field as JSON has them: times and days as numbers, bytes in hex."""
    return {
        name: {
            end: value.hex() if isinstance(value, bytes) else value
            for end, value in msgspec.structs.asdict(one).items()
        }
        for name, one in ranges.items()
    }
