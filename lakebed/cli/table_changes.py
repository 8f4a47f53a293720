"""Commands of `lakebed table` that change a table, or show its leaves and its history."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from lakebed.cli.program import (
    Command,
    Session,
    confirm_clearing,
    counted,
    pass_session,
    time_text,
)
from lakebed.cli.row_commands.key_text import (
    named_types,
    processing_in_file,
    renames_from_text,
    settings_from_text,
    split_point_from_text,
    split_point_text,
    split_points_from_file,
)
from lakebed.errors import InvalidError
from lakebed.model.processing import processing_json
from lakebed.model.schema import schema_json

if TYPE_CHECKING:
    from lakebed.tables.change_table import TableChange


@click.command(
    "set",
    cls=Command,
    examples="""
    lakebed table set trips leaf_rows_max=1000000
    lakebed table set trips compaction_strategy=basic job_files_max=20
    """,
)
@click.argument("name")
@click.argument("settings", nargs=-1, required=True, metavar="NAME=VALUE...")
@pass_session
def set_(session: Session, *, name: str, settings: tuple[str, ...]) -> None:
    """Give settings of table NAME new values. `lakebed table describe` shows all."""
    changes = settings_from_text(settings, hint="write NAME=VALUE")
    with session.open() as lake:
        after = msgspec.to_builtins(lake.table(name).change_settings(**changes))
    session.give(
        {"table": name, "settings": after},
        "\n".join(f"{setting} = {after[setting]}" for setting in changes),
    )


@click.command(
    cls=Command,
    examples="""
    lakebed table alter trips --add tip:float64?
    lakebed table alter trips --rename fare=price --widen count:int64 --drop note
    lakebed table alter trips --processing keep_a_year.json
    """,
)
@click.argument("name")
@click.option("--add", multiple=True, metavar="NAME:TYPE?", help="New value field, nullable.")
@click.option("--rename", multiple=True, metavar="OLD=NEW", help="Any field, also a key.")
@click.option("--drop", multiple=True, metavar="NAME", help="Value field; its values are lost.")
@click.option("--widen", multiple=True, metavar="NAME:TYPE", help="Value field, to a wider type.")
@click.option(
    "--processing",
    "processing_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Processing of rows from now on, JSON; `null`: none.",
)
@pass_session
def alter(
    session: Session,
    *,
    name: str,
    add: tuple[str, ...],
    rename: tuple[str, ...],
    drop: tuple[str, ...],
    widen: tuple[str, ...],
    processing_file: Path | None,
) -> None:
    """Change fields of table NAME, all at once, or its processing. No file is rewritten.

    Existing rows are null in a new field. Integers widen to larger ones, float32 to float64,
    decimals to more digits. Keys may only be renamed. Names are those of before the change.
    """
    if processing_file is not None:
        if add or rename or drop or widen:
            raise InvalidError(
                "fields and processing cannot change in one command",
                table=name,
                hint="give --processing in a command of its own",
            )
        _change_processing(session, name, processing_file)
        return
    with session.open() as lake:
        opened = lake.table(name)
        after = opened.change_fields(
            add=named_types(add),
            rename=renames_from_text(rename),
            drop=drop,
            widen=named_types(widen),
        )
    done = "\n".join(str(change) for change in after.past[-1].changes)
    session.give({"table": name, "schema": schema_json(after)}, done)


def _change_processing(session: Session, name: str, path: Path) -> None:
    with session.open() as lake:
        opened = lake.table(name)
        after = opened.change_processing(processing_in_file(path))
        value = None if after is None else processing_json(after, opened.schema)
    session.give({"table": name, "processing": value}, json.dumps(value, indent=2))


@click.command(
    cls=Command,
    examples="""
    lakebed table history trips
    lakebed table history trips --json
    """,
)
@click.argument("name")
@pass_session
def history(session: Session, name: str) -> None:
    """Tell when table NAME was created and cleared, and its settings and fields changed.

    As far back as its log is kept: snapshots replace what is older.
    """
    with session.open() as lake:
        found = lake.table(name).history()
    value = {
        "since": found.since,
        "changes": [
            msgspec.to_builtins(change) | {"at": time_text(change.at)} for change in found.changes
        ],
    }
    lines = [_change_text(change) for change in found.changes]
    if found.since > 1:
        lines.insert(0, f"(before log entry {found.since} nothing is kept)")
    session.give(value, "\n".join(lines) or "nothing was changed")


@click.command(
    "split-points",
    cls=Command,
    examples="""
    lakebed table split-points trips > points.txt
    lakebed table create copy --schema trips.json --split-points points.txt
    """,
)
@click.argument("name")
@pass_session
def split_points(session: Session, *, name: str) -> None:
    """Write where the leaves of table NAME begin, a line each.

    A new table, or one that is cleared, gets the same leaves from it.
    """
    with session.open() as lake:
        opened = lake.table(name)
        schema, points = opened.schema, opened.split_points
    lines = [split_point_text(schema, point) for point in points]
    session.give({"table": name, "split_points": lines}, "\n".join(lines))


@click.command(
    cls=Command,
    examples="""
    lakebed table clear trips --dry-run
    lakebed table clear trips --yes
    lakebed table clear trips --split-points points.txt --yes
    """,
)
@click.argument("name")
@click.option(
    "--split-point",
    "split_points",
    multiple=True,
    metavar="V",
    help="Value of the first row key, or V,V of the first ones, where a leaf begins; ascending."
    "  [default: leaves stay]",
)
@click.option(
    "--split-points",
    "split_points_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="One split point in each line; an empty file makes one leaf.",
)
@click.option("--base64", "as_base64", is_flag=True, help="The lines of that file are base64.")
@click.option(
    "--from-start", is_flag=True, help="Let feeds take their sources from the beginning again."
)
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--dry-run", is_flag=True, help="Say what would be removed, and remove nothing.")
@pass_session
def clear(
    session: Session,
    *,
    name: str,
    split_points: tuple[str, ...],
    split_points_file: Path | None,
    as_base64: bool,
    from_start: bool,
    yes: bool,
    dry_run: bool,
) -> None:
    """Remove all rows of table NAME, for good. It keeps its partitions, or gets new ones.

    An ingest that has begun before is refused, and may be sent again. Feeds go on behind what they
    have taken, or begin again, with --from-start.
    """
    if split_points and split_points_file is not None:
        raise InvalidError("split points twice", hint="use --split-point or --split-points")
    with session.open() as lake:
        opened = lake.table(name)
        schema = opened.schema
        points: list[object] | None = None
        if split_points_file is not None:
            points = [*split_points_from_file(schema, split_points_file, as_base64=as_base64)]
        elif split_points:
            points = [split_point_from_text(schema, text) for text in split_points]
        (before,) = lake.status(name)
        about = "" if before.rows_exact else "about "
        what = f"{about}{counted(before.rows, 'row')} of table {opened.name}"
        if dry_run:
            session.give({"would_clear": name, "rows": before.rows}, f"would remove {what}")
            return
        confirm_clearing(session, yes=yes, question=f"remove {what}?", table=name)
        opened.clear(split_points=points, from_start=from_start)
        (after,) = lake.status(name)
    value = {"cleared": name, "leaves": after.leaves}
    session.give(value, f"removed {what}, leaves: {after.leaves}")


@click.command(cls=Command, examples="lakebed table rename trips rides")
@click.argument("old")
@click.argument("new")
@pass_session
def rename(session: Session, old: str, new: str) -> None:
    """Give table OLD the name NEW. No rows are copied; processes that work on it go on."""
    with session.open() as lake:
        lake.rename_table(old, new)
    session.give({"table": new, "before": old}, f"table {old} is now {new}")


@click.command(cls=Command, examples="lakebed table offline trips")
@click.argument("name")
@pass_session
def offline(session: Session, name: str) -> None:
    """Let `lakebed run` pass over table NAME, unless it is named.

    Rows can be taken in and read all the same. Compaction jobs that were created before are done.
    """
    _set_online(session, name, online=False)


@click.command(cls=Command, examples="lakebed table online trips")
@click.argument("name")
@pass_session
def online(session: Session, name: str) -> None:
    """Let `lakebed run` work on table NAME again."""
    _set_online(session, name, online=True)


@click.command(
    cls=Command,
    examples="""
    lakebed table quarantine trips
    lakebed table quarantine trips --undo
    """,
)
@click.argument("name")
@click.option("--undo", is_flag=True, help="Bring it back; as `lakebed table online`.")
@pass_session
def quarantine(session: Session, name: str, *, undo: bool) -> None:
    """Set table NAME aside, whether its log can be read or not.

    Nothing is done on it or with it, and all of its bytes stay. Then other tables are worked on
    without errors, and it can be mended, brought back or dropped.
    """
    if undo:
        _set_online(session, name, online=True)
        return
    with session.open() as lake:
        lake.quarantine(name)
    session.give({"table": name, "quarantined": True}, f"table {name} is in quarantine")


def _set_online(session: Session, name: str, *, online: bool) -> None:
    with session.open() as lake:
        lake.set_online(name, online=online)
    session.give(
        {"table": name, "online": online},
        f"table {name} is {'online' if online else 'offline'}",
    )


def _change_text(change: TableChange) -> str:
    said: str = change.what
    if change.leaves is not None:
        said += f", leaves: {change.leaves}"
    parts = [*(f"{name} = {value}" for name, value in change.settings.items()), *change.fields]
    if change.what == "processing":
        parts = [json.dumps(change.processing)]
    values = ", ".join(parts)
    return f"{change.number}  {time_text(change.at)}  {said}" + (f": {values}" if values else "")
