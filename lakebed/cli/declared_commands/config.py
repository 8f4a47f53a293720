"""`lakebed config download`, `lakebed config diff`: what is there, as files."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from lakebed.cli.program import CommandGroup, Session, counted, pass_session
from lakebed.cli.work import ReportedFailures

if TYPE_CHECKING:
    from lakebed.tables.compare_tables import TableDifference

TABLES = "tables"
"""The folder of tables' files, in that of an instance."""


@click.group(
    cls=CommandGroup,
    examples="""
    lakebed config download prod
    lakebed config diff prod
    """,
)
def config() -> None:
    """Write what is there as files, or compare it with files."""


@config.command(
    examples="""
    lakebed config download prod
    lakebed config download prod --replace
    """
)
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--replace", is_flag=True, help="Write over files that say something else.")
@pass_session
def download(session: Session, *, folder: Path, replace: bool) -> None:
    """Write what is there into DIR: a file for each table in DIR/tables, split points beside it.

    `lakebed apply DIR/tables` takes them: here without a change; in another lake it makes such
    tables. A table that cannot be read is named with the reason. The exit code is that of the
    gravest error.
    """
    from lakebed.tables.table_files import write_table_texts

    failures = ReportedFailures(session)
    with session.open() as lake:
        texts = lake.table_files(failed=failures.add)
    done = write_table_texts(folder / TABLES, texts, replace=replace)
    failures.show_new()
    lines = [f"written: {TABLES}/{name}" for name in done.written]
    lines.append(f"{counted(len(done.unchanged), 'file')} as before")
    lines += [f"of no table that is there: {TABLES}/{name}" for name in done.not_there]
    session.give(msgspec.to_builtins(done) | {"failed": failures.values()}, "\n".join(lines))
    sys.exit(failures.exit_code)


@config.command("diff", examples="lakebed config diff prod")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@pass_session
def config_diff(session: Session, *, folder: Path) -> None:
    """Compare what is there with the files in DIR: tables with those that DIR/tables declares."""
    with session.open() as lake:
        found = lake.compare_tables(folder / TABLES)
    lines = [line for one in found for line in _difference_lines(one)]
    value = {"tables": msgspec.to_builtins(found)}
    session.give(value, "\n".join(lines) or "all tables are as the files say")


def _difference_lines(one: TableDifference) -> list[str]:
    if not one.is_there:
        return [f"table {one.table}: only in {TABLES}/{one.file}"]
    if not one.file:
        return [f"table {one.table}: in no file"]
    return [f"table {one.table} ({TABLES}/{one.file})", *(f"  {line}" for line in one.details)]
