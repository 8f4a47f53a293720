"""`lakebed config download`, `lakebed config diff`: what is there, as files."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from lakebed.cli.declared_commands.instance_file import FILE_NAME, SettingsFile, difference_line
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
    lakebed --at prod config download prod
    lakebed config download prod --replace
    """
)
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--replace", is_flag=True, help="Write over files that say something else.")
@pass_session
def download(session: Session, *, folder: Path, replace: bool) -> None:
    """Write what is there into DIR: a file for each table in DIR/tables, split points beside it; of
    an instance on AWS its settings, too, as DIR/lakebed.toml.

    `lakebed apply DIR/tables` takes the files of tables: here without a change; in another lake it
    makes such tables. `cdk deploy -c file=DIR/lakebed.toml` deploys an instance that is set so. A
    table that cannot be read is named with the reason. The exit code is that of the gravest error.
    """
    from lakebed.tables.table_files import write_table_texts, write_whole

    failures = ReportedFailures(session)
    file = SettingsFile(session, folder)
    text = file.new_text(replace=replace)
    with session.open() as lake:
        texts = lake.table_files(failed=failures.add)
    done = write_table_texts(folder / TABLES, texts, replace=replace)
    if text is not None:
        write_whole(file.path, text)
    failures.show_new()
    lines = [f"written: {FILE_NAME}"] if text is not None else []
    lines += [f"written: {TABLES}/{name}" for name in done.written]
    lines.append(f"{counted(len(done.unchanged), 'file')} as before")
    lines += [f"of no table that is there: {TABLES}/{name}" for name in done.not_there]
    value = msgspec.to_builtins(done) | {"settings_written": text is not None}
    session.give(value | {"failed": failures.values()}, "\n".join(lines))
    if file.unsaid is not None:
        raise file.unsaid
    sys.exit(failures.exit_code)


@config.command(
    "diff",
    examples="""
    lakebed config diff prod
    lakebed --at prod config diff prod
    """,
)
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@pass_session
def config_diff(session: Session, *, folder: Path) -> None:
    """Compare what is there with the files in DIR: tables with those that DIR/tables declares, and
    settings of an instance on AWS with DIR/lakebed.toml, if that is there.

    Of each setting that differs, what is deployed stands before what the file says. Folders of
    packages and tables are named by the machine that deploys: only whether there is one is
    compared. A file without a folder of tables beside it is compared alone.
    """
    file = SettingsFile(session, folder)
    settings = file.differences()
    found = []
    has_tables = (folder / TABLES).is_dir() or not file.is_there
    if has_tables:
        with session.open() as lake:
            found = lake.compare_tables(folder / TABLES)
    lines = [f"settings ({FILE_NAME})"] if settings else []
    lines += map(difference_line, settings or ())
    lines += [line for one in found for line in _difference_lines(one)]
    same = " and ".join(["settings"] * (settings is not None) + ["all tables"] * has_tables)
    value = {
        "tables": msgspec.to_builtins(found) if has_tables else None,
        "settings": msgspec.to_builtins(settings),
    }
    if same:
        session.give(value, "\n".join(lines) or f"{same} are as the files say")
    if file.unsaid is not None and file.is_there:
        raise file.unsaid


def _difference_lines(one: TableDifference) -> list[str]:
    if not one.is_there:
        return [f"table {one.table}: only in {TABLES}/{one.file}"]
    if not one.file:
        return [f"table {one.table}: in no file"]
    return [f"table {one.table} ({TABLES}/{one.file})", *(f"  {line}" for line in one.details)]
