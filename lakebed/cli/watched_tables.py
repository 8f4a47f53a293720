"""Makes a table watch a folder of S3: files that arrive there become its rows."""

from __future__ import annotations

import click

from lakebed.cli.program import Command, Session, pass_session
from lakebed.errors import InvalidError


@click.command(
    cls=Command,
    examples="""
    lakebed --at aws:dev table watch trips s3://landing/trips/
    lakebed --at aws:dev table watch trips
    lakebed --at aws:dev table watch trips --none
    """,
)
@click.argument("name")
@click.argument("folder", required=False)
@click.option("--none", "nothing", is_flag=True, help="Watch no folder any more.")
@pass_session
def watch(session: Session, name: str, folder: str | None, *, nothing: bool) -> None:
    """Let files that arrive below FOLDER of S3 become rows of table NAME, or show which do.

    They are submitted by themselves (`lakebed explain batches`). Files that lie there already are
    not: submit those. Of several tables that watch folders in folders, a file is that of the
    nearest.
    """
    if nothing and folder is not None:
        raise InvalidError("both a folder and --none", folder=folder, hint="give one of them")
    with session.open() as lake:
        if nothing or folder is not None:
            lake.watch(name, folder)
        watched = lake.watched_folder(name)
    text = f"table {name} watches {watched or 'no folder'}"
    session.give({"table": name, "watch": watched}, text)
