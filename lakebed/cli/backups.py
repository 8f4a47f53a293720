"""`lakebed backup` and `lakebed restore`: a lake in another place, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import msgspec

from lakebed.cli.program import Command, Session, counted, pass_session
from lakebed.cli.progress import ProgressLine

if TYPE_CHECKING:
    from lakebed.backups.copy_lake import LakeCopied


@click.command(
    cls=Command,
    examples="""
    lakebed backup /mnt/backup/lake
    lakebed --lake ./lake backup ./backup --prune
    lakebed --at prod backup ./prod-backup
    """,
)
@click.argument("directory")
@click.option(
    "--objects",
    metavar="s3://BUCKET/PREFIX",
    help="Where a new backup keeps its objects; else in DIRECTORY.",
)
@click.option("--prune", is_flag=True, help="Remove tables from it that the lake has dropped.")
@pass_session
def backup(session: Session, directory: str, *, objects: str | None, prune: bool) -> None:
    """Copy the lake into DIRECTORY, which becomes a lake that can be opened.

    Other processes may write meanwhile: each table is copied as it was when its copy began. Again
    copies only what is new. Exits with the error's code if a table could not be copied; its backup
    stays the version before.
    """
    with session.open() as lake, ProgressLine(silent=session.as_json) as line:
        done = lake.backup(
            directory,
            objects=objects,
            prune=prune,
            on_progress=lambda name, at, total: line.show(f"{name}: {at:,} of {total:,} files"),
        )
    _give(session, done, f"into {directory}")


@click.command(
    cls=Command,
    examples="""
    lakebed --lake ./restored restore /mnt/backup/lake
    """,
)
@click.argument("directory")
@pass_session
def restore(session: Session, directory: str) -> None:
    """Copy the backup in DIRECTORY into the lake: a new one, or one that an earlier try began.

    A lake that has gone on since the backup is refused: restore into a new directory.
    """
    with session.open(create=True) as lake, ProgressLine(silent=session.as_json) as line:
        done = lake.restore(
            directory,
            on_progress=lambda name, at, total: line.show(f"{name}: {at:,} of {total:,} files"),
        )
    _give(session, done, f"from {directory}")


def _give(session: Session, done: LakeCopied, where: str) -> None:
    """Show what was copied; a table that was not copied ends the command with its error."""
    lines = [
        f"{table.table}: {table.problem}"
        if table.problem
        else f"{table.table}: entry {table.number}, {counted(table.files_copied, 'file')} copied"
        f" ({table.bytes_copied:,} bytes), {table.files_kept:,} there before"
        for table in done.tables
    ]
    lines += [f"{name}: kept, though the lake has dropped it" for name in done.only_in_copy]
    copied = len(done.tables) - len(done.problems)
    lines.append(f"{counted(copied, 'table')} copied {where}")
    value = {
        "tables": msgspec.to_builtins(done.tables),
        "only_in_copy": list(done.only_in_copy),
    }
    session.give(value, "\n".join(lines))
    if done.failure is not None:
        raise done.failure
