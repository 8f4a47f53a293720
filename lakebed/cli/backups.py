"""`lakebed backup` and `lakebed restore`: a lake in another place, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import msgspec

from lakebed.cli.program import Command, Session, counted, pass_session
from lakebed.cli.progress import ProgressLine
from lakebed.cli.row_commands.exports import restore_exported
from lakebed.errors import InvalidError

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
    stays the version before. A table in quarantine is left out, which is no error.
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
    lakebed restore trips /mnt/archive/trips
    lakebed restore trips s3://bucket/trips/_manifest.json --verify
    """,
)
@click.argument("what", metavar="DIRECTORY|TABLE")
@click.argument("manifest", required=False)
@click.option("--verify", is_flag=True, help="Of a table: read files and table, and compare.")
@pass_session
def restore(session: Session, what: str, manifest: str | None, *, verify: bool) -> None:
    """Copy the backup in DIRECTORY into the lake: a new one, or one that an earlier try began. With
    MANIFEST make TABLE of what `lakebed export` wrote; again completes it.

    A lake that has gone on since the backup is refused: restore into a new directory. MANIFEST is
    the folder of the export, or the file _manifest.json in it. A table of this name that has
    another schema or processing, or rows, is refused.
    """
    if manifest is not None:
        restore_exported(session, what, manifest, verify=verify)
        return
    if verify:
        hint = "name a table and a manifest; `lakebed --lake LAKE fsck --deep` reads a whole lake"
        raise InvalidError("--verify is for one table", hint=hint)
    with session.open(create=True) as lake, ProgressLine(silent=session.as_json) as line:
        done = lake.restore(
            what,
            on_progress=lambda name, at, total: line.show(f"{name}: {at:,} of {total:,} files"),
        )
    _give(session, done, f"from {what}")


def _give(session: Session, done: LakeCopied, where: str) -> None:
    """Show what was copied; a table that was not copied ends the command with its error."""
    lines = [
        f"{table.table}: {table.problem}"
        if table.problem
        else f"{table.table}: entry {table.number}, {counted(table.files_copied, 'file')} copied"
        f" ({table.bytes_copied:,} bytes), {table.files_kept:,} there before"
        for table in done.tables
    ]
    lines += [
        f"{name}: left out, it is in quarantine; a copy that was made before stays as it was"
        for name in done.quarantined
    ]
    lines += [f"{name}: kept, though the lake has dropped it" for name in done.only_in_copy]
    copied = len(done.tables) - len(done.problems)
    lines.append(f"{counted(copied, 'table')} copied {where}")
    value = {
        "tables": msgspec.to_builtins(done.tables),
        "only_in_copy": list(done.only_in_copy),
        "quarantined": list(done.quarantined),
    }
    session.give(value, "\n".join(lines))
    if done.failure is not None:
        raise done.failure
