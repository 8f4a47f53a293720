"""`lakebed export`, and `lakebed restore` of a table: rows as files with a manifest, and back."""

from __future__ import annotations

import click
import msgspec

from lakebed.cli.program import Command, Session, arguments_as, counted, pass_session
from lakebed.cli.progress import ProgressLine
from lakebed.cli.row_commands.asked_rows import (
    asked_of,
    chosen_columns,
    chosen_rows,
    chosen_version,
    columns_of,
)


class ExportArguments(msgspec.Struct, frozen=True, kw_only=True):
    """The arguments of `lakebed export`."""

    table: str
    target: str
    keys: tuple[str, ...]
    ranges: tuple[str, ...]
    columns: str | None
    where: str | None
    as_of: str | None
    restart: bool
    workers: int | None


@click.command(
    cls=Command,
    examples="""
    lakebed export trips /mnt/archive/trips
    lakebed export trips s3://bucket/trips --range id=a..c --columns id,at,fare
    lakebed export trips ./dear --where "fare > 100"
    lakebed export trips ./quarter --as-of 2026-10-01T00:00Z
    lakebed --at prod export trips s3://archive/trips
    """,
)
@click.argument("table")
@click.argument("target")
@chosen_rows
@chosen_columns
@chosen_version
@click.option("--restart", is_flag=True, help="Remove what an export put there, and begin anew.")
@click.option(
    "--workers",
    type=int,
    metavar="N",
    help="Parts that are read at the same time.  [default: one a CPU, at most 4]",
)
@pass_session
@arguments_as(ExportArguments)
def export(session: Session, given: ExportArguments) -> None:
    """Write the rows of TABLE to files of Parquet in TARGET, in key order, with a manifest.

    TARGET is a directory or s3://BUCKET/FOLDER, empty or not there yet. Processes may write to the
    table meanwhile: one version is exported, the newest or an older one. After a kill the same
    command goes on where that one was. `lakebed restore TABLE TARGET` makes an equal table of it.
    """
    with session.open() as lake, ProgressLine(silent=session.as_json) as line:
        opened = lake.table(given.table)
        done = opened.export(
            given.target,
            **asked_of(opened.schema, given),
            columns=columns_of(given.columns),
            as_of=given.as_of,
            restart=given.restart,
            workers=given.workers,
            on_progress=lambda rows, total: line.count("written", rows, total),
        )
    files = f"{counted(done.files, 'file')} ({done.bytes:,} bytes)"
    said = f"{counted(done.rows, 'row')} in {files}, up to log entry {done.number}"
    if done.repeated:
        said += ": it was finished before"
    session.give(msgspec.to_builtins(done), f"{said}\n{done.manifest}")


def restore_exported(session: Session, table: str, manifest: str, *, verify: bool) -> None:
    """Make a table of an export, in a lake that is made if there is none, and say so."""
    with session.open(create=True) as lake, ProgressLine(silent=session.as_json) as line:
        done = lake.restore_table(table, manifest, verify=verify, on_progress=line.count)
    said = f"{counted(done.rows, 'row')} in {counted(done.files, 'file')}, log entry {done.number}"
    if done.repeated:
        said = f"{table} was restored before, in log entry {done.number}: nothing to do"
    if done.verified is not None:
        said += f"; compared {counted(done.verified, 'row')}: equal"
    session.give(msgspec.to_builtins(done), said)
