"""`lakebed delete`: rows go."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import click
import msgspec

from lakebed.cli.program import Command, Session, arguments_as, counted, pass_session
from lakebed.cli.progress import ProgressLine
from lakebed.cli.row_commands.asked_rows import asked_of, chosen_rows
from lakebed.errors import InvalidError


class DeleteArguments(msgspec.Struct, frozen=True, kw_only=True):
    """The arguments of `lakebed delete`."""

    table: str
    keys: tuple[str, ...]
    ranges: tuple[str, ...]
    where: str | None
    every_row: bool
    job: str | None
    yes: bool
    dry_run: bool


@click.command(
    cls=Command,
    examples="""
    lakebed delete trips --key b7 --yes
    lakebed delete flights --range "time_hour=..2013-02-01T00:00:00Z" --yes
    lakebed delete flights --where "carrier = 'UA' and dep_delay is null" --dry-run
    lakebed delete flights --key UA,1545 --job erase-1545 --yes
    lakebed delete trips --all --yes
    """,
)
@click.argument("table")
@chosen_rows
@click.option("--all", "every_row", is_flag=True, help="Every row.")
@click.option(
    "--job", metavar="ID", help="Name of this request, which is done once, however often sent."
)
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--dry-run", is_flag=True, help="Say how many rows would go, and delete nothing.")
@pass_session
@arguments_as(DeleteArguments)
def delete(session: Session, given: DeleteArguments) -> None:
    """Delete rows of TABLE: those that `lakebed query` gives with the same options.

    Ranges of whole keys go at once. For others files are written again, leaf by leaf; if that is
    interrupted, the same command completes it. Rows that are ingested meanwhile stay.
    """
    with session.open() as lake:
        opened = lake.table(given.table)
        asked = asked_of(opened.schema, given)
        _check(asked, every_row=given.every_row)

        def count() -> int:
            with ProgressLine(silent=session.as_json).reading():
                return opened.count(**asked)

        if given.dry_run:
            rows = count()
            value = {"would_delete": given.table, "rows": rows}
            session.give(value, f"would delete {counted(rows, 'row')} of table {given.table}")
            return
        _confirm(session, given, count)
        with ProgressLine(silent=session.as_json).reading():
            done = opened.delete(**asked, all=given.every_row, job=given.job)
    about = "" if done.exact else "about "
    said = f"deleted {about}{counted(done.rows, 'row')} of table {given.table}"
    if done.repeated:
        said = f"job {given.job} was done before, in log entry {done.number}: nothing to do"
    session.give({"table": given.table, **msgspec.to_builtins(done)}, said)


def _check(asked: dict[str, Any], *, every_row: bool) -> None:
    has_condition = any(value is not None for value in asked.values())
    if has_condition and every_row:
        raise InvalidError("--all goes with no condition", hint="leave one of them out")
    if not has_condition and not every_row:
        hint = "give --key, --range or --where; --all deletes every row"
        raise InvalidError("a delete without a condition", hint=hint)


def _confirm(session: Session, given: DeleteArguments, count: Callable[[], int]) -> None:
    """Ask whether rows are to go, unless the answer is known. count: how many they are.

    Raises:
        InvalidError: no terminal is there to ask. click.Abort: the answer is no.
    """
    if given.yes:
        return
    if session.as_json or not sys.stdin.isatty():
        hint = "look with --dry-run, then add --yes"
        raise InvalidError("a delete cannot be undone", table=given.table, hint=hint)
    what = f"{counted(count(), 'row')} of table {given.table}"
    click.confirm(f"delete {what}?", abort=True, err=True)
