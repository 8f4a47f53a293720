"""`lakebed table`: create, list, describe, drop. Other changes: `table_changes.py`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec
from click.core import ParameterSource

from lakebed.cli.program import CommandGroup, Session, arguments_as, pass_session
from lakebed.cli.row_commands.key_text import (
    named_types,
    processing_in_file,
    schema_from_options,
    settings_from_text,
    split_point_from_text,
    split_points_from_file,
    text_in,
)
from lakebed.errors import InvalidError, UnreadableInputError
from lakebed.model.json_fields import fields_once
from lakebed.model.processing import processing_json
from lakebed.model.schema import Schema, schema_from_json, schema_json

if TYPE_CHECKING:
    from lakebed.table import Table


class CreateTableArguments(msgspec.Struct, frozen=True, kw_only=True):
    """The arguments of `lakebed table create`."""

    name: str
    schema_file: Path | None
    like: Path | None
    row_keys: tuple[str, ...]
    sort_keys: tuple[str, ...]
    values: tuple[str, ...]
    split_points: tuple[str, ...]
    split_points_file: Path | None
    split_sample: Path | None
    leaves: int | None
    as_base64: bool
    settings: tuple[str, ...]
    processing_file: Path | None
    objects: str | None
    definition_file: Path | None


@click.group(
    cls=CommandGroup,
    examples="""
    lakebed table create trips --row-key id:string --value count:int64?
    lakebed table list
    lakebed table describe trips
    lakebed table drop trips
    """,
)
def table() -> None:
    """Create, list, describe, change and drop tables."""


@table.command(
    examples="""
    lakebed table create trips --row-key id:string --sort-key at:int64 --value fare:float64?
    lakebed table create trips --schema trips.json --set leaf_rows_max=1000000
    lakebed table create trips --like trips.parquet --row-key id
    lakebed table create trips --like trips.parquet --row-key "at:timestamp[us, UTC]"
    lakebed table create copy --definition trips.json
    lakebed table create trips --row-key id:string --objects s3://bucket/trips
    lakebed table create trips --row-key id:string --split-point g --split-point p
    lakebed table create trips --schema trips.json --processing keep_latest.json
    lakebed table create trips --like day.parquet --row-key id --split-sample day.parquet --leaves 8
    """
)
@click.argument("name")
@click.option(
    "--definition",
    "definition_file",
    type=click.Path(path_type=Path, allow_dash=True),
    metavar="FILE.json",
    help="All of it, as `lakebed table describe --definition` writes it; `-`: from stdin.",
)
@click.option("--schema", "schema_file", type=click.Path(path_type=Path), metavar="FILE.json")
@click.option(
    "--like",
    type=click.Path(path_type=Path),
    metavar="FILE.parquet",
    help="Its columns; a key is a name, or NAME:TYPE for another type.",
)
@click.option("--row-key", "row_keys", multiple=True, metavar="NAME:TYPE", help="Required field.")
@click.option("--sort-key", "sort_keys", multiple=True, metavar="NAME:TYPE", help="Required field.")
@click.option("--value", "values", multiple=True, metavar="NAME:TYPE[?]", help="`?`: nullable.")
@click.option(
    "--split-point",
    "split_points",
    multiple=True,
    metavar="V",
    help="Value of the first row key, or V,V of the first ones, where a leaf begins; ascending.",
)
@click.option(
    "--split-points",
    "split_points_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="One split point in each line.",
)
@click.option(
    "--split-sample",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Rows like those to come, from which split points are chosen, for --leaves.",
)
@click.option("--leaves", type=int, metavar="N", help="Number of leaves, with --split-sample.")
@click.option("--base64", "as_base64", is_flag=True, help="The lines of that file are base64.")
@click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="A setting.")
@click.option(
    "--processing",
    "processing_file",
    type=click.Path(path_type=Path),
    metavar="FILE.json",
    help="What the table does with its rows: filter, age-off, aggregation, latest, iterator.",
)
@click.option(
    "--objects",
    metavar="s3://BUCKET/PREFIX",
    help="Where a new lake keeps its files.  [default: in its directory]",
)
@pass_session
@arguments_as(CreateTableArguments)
def create(session: Session, given: CreateTableArguments) -> None:
    """Create an empty table called NAME, and the lake if there is none.

    A type is one of int32, int64, string, binary, date32, "timestamp[us, UTC]" and, for values,
    those that `lakebed explain types` lists.
    """
    if given.definition_file is not None:
        _refuse_others_than({"name", "definition_file", "objects"})
        _create_from(session, given.name, given.definition_file, given.objects)
        return
    schema = _schema_given(given)
    points = _points_given(given, schema)
    path = given.processing_file
    processing = None if path is None else processing_in_file(path)
    with session.open(create=True, objects=given.objects) as lake:
        made = lake.create_table(
            given.name,
            schema,
            split_points=points,
            settings=settings_from_text(given.settings),
            processing=processing,
        )
        _show_created(session, made, len(points) + 1)


def _schema_given(given: CreateTableArguments) -> Schema:
    """Return the schema that the options say."""
    fields = given.row_keys, given.sort_keys, given.values
    if given.schema_file is not None and (given.like or any(fields)):
        raise InvalidError("--schema names all fields", hint="leave the other options out")
    if given.schema_file is not None:
        return _schema_in(given.schema_file)
    if given.like is not None:
        return _schema_like(given.like, *fields)
    return schema_from_options(*fields)


def _points_given(given: CreateTableArguments, schema: Schema) -> list[object]:
    """Return the split points that the options say, or that a sample gives."""
    points: list[object] = [split_point_from_text(schema, text) for text in given.split_points]
    if given.split_points_file is not None:
        if given.split_points:
            raise InvalidError("split points twice", hint="use --split-point or --split-points")
        path = given.split_points_file
        points += split_points_from_file(schema, path, as_base64=given.as_base64)
    if (given.split_sample is None) != (given.leaves is None):
        hint = "give --split-sample FILE and --leaves N"
        raise InvalidError("a sample and a number of leaves go together", hint=hint)
    if given.split_sample is None or given.leaves is None:
        return points
    if points:
        raise InvalidError("split points twice", hint="leave out the sample or the points")
    return _sampled(given.split_sample, schema, given.leaves)


def _refuse_others_than(defined: set[str]) -> None:
    """Raise InvalidError where options are given that the definition says."""
    given = click.get_current_context()
    for name in given.params:
        if name not in defined and given.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            hint = "leave the other options out"
            raise InvalidError("--definition describes the whole table", hint=hint)


def _create_from(session: Session, name: str, path: Path, objects: str | None) -> None:
    """Create a table from the definition in a file, or on stdin."""
    try:
        text = sys.stdin.read() if str(path) == "-" else text_in(path)
        value = json.loads(text)
    except (OSError, ValueError, RecursionError) as error:
        hint = "write one with `lakebed table describe NAME --definition`"
        raise UnreadableInputError(
            "cannot read the definition", path=path, reason=error, hint=hint
        ) from None
    with session.open(create=True, objects=objects) as lake:
        made = lake.create_table_from(name, value)
        _show_created(session, made, len(made.split_points) + 1)


def _show_created(session: Session, made: Table, leaves: int) -> None:
    value = {"table": made.name, "leaves": leaves, "schema": schema_json(made.schema)}
    keys = ", ".join(field.name for field in made.schema.row_keys)
    session.give(value, f"created table {made.name} by {keys}, leaves: {leaves}")


@table.command("list", examples="lakebed table list\nlakebed table list --json")
@pass_session
def list_(session: Session) -> None:
    """List all tables."""
    with session.open() as lake:
        names = lake.tables()
        conditions = {name: lake.table_condition(name) for name in lake.tables(online=False)}
    lines = [f"{name}  ({conditions[name]})" if name in conditions else name for name in names]
    session.give(names, "\n".join(lines) or "no tables yet")


@table.command(
    examples="""
    lakebed table describe trips
    lakebed table describe trips --json
    lakebed table describe trips --definition > trips.json
    """
)
@click.argument("name")
@click.option(
    "--definition",
    is_flag=True,
    help="Write schema, split points, settings and processing as `create --definition` takes them.",
)
@pass_session
def describe(session: Session, name: str, *, definition: bool) -> None:
    """Show the fields and settings of a table."""
    with session.open() as lake:
        opened = lake.table(name)
        if definition:
            click.echo(json.dumps(opened.definition, indent=None if session.as_json else 2))
            return
        session.give(_described(opened), _described_text(opened))


@table.command(examples="lakebed table drop trips --dry-run\nlakebed table drop trips --yes")
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--dry-run", is_flag=True, help="Say what would be removed, and remove nothing.")
@pass_session
def drop(session: Session, name: str, *, yes: bool, dry_run: bool) -> None:
    """Remove a table and all its rows, for good.

    One whose log is damaged is set aside before: `lakebed table quarantine`.
    """
    with session.open() as lake:
        lake.table_condition(name)
        if dry_run:
            session.give({"would_drop": name}, f"would drop table {name} and all its rows")
            return
        if not yes:
            if session.as_json or not sys.stdin.isatty():
                raise InvalidError(
                    "dropping a table cannot be undone", table=name, hint="add --yes"
                )
            click.confirm(f"drop table {name} and all its rows?", abort=True, err=True)
        lake.drop_table(name)
    session.give({"dropped": name}, f"dropped table {name}")


def _sampled(path: Path, schema: Schema, leaves: int) -> list[object]:
    from lakebed.ingest.split_points import split_points_from

    return [*split_points_from(path, schema, leaves=leaves)]


def _schema_in(path: Path) -> Schema:
    try:
        return schema_from_json(json.loads(text_in(path), object_pairs_hook=fields_once))
    except (OSError, ValueError, RecursionError) as error:
        hint = 'for instance {"row_keys": [{"name": "id", "type": "string"}]}'
        raise UnreadableInputError(
            "cannot read the schema", path=path, reason=error, hint=hint
        ) from None


def _schema_like(
    like: Path, row_keys: tuple[str, ...], sort_keys: tuple[str, ...], values: tuple[str, ...]
) -> Schema:
    """Return the schema of a file's columns. A key is a name, or NAME:TYPE where it is to have
    another type; values are named only for that."""
    from lakebed.sorted_files.format.arrow_schema import schema_from_arrow
    from lakebed.user_files.csv_and_parquet import parquet_columns

    columns = parquet_columns(like)
    typed = [t for t in (*row_keys, *sort_keys) if ":" in t and t not in columns.names]
    types = named_types([*typed, *values])

    def names(texts: tuple[str, ...]) -> list[str]:
        return [text.partition(":")[0] if text in typed else text for text in texts]

    return schema_from_arrow(
        columns, row_keys=names(row_keys), sort_keys=names(sort_keys), types=types
    )


def _described(opened: Table) -> dict[str, Any]:
    import msgspec

    return {
        "table": opened.name,
        "schema": schema_json(opened.schema),
        "settings": msgspec.to_builtins(opened.settings),
        "processing": None
        if opened.processing is None
        else processing_json(opened.processing, opened.schema),
    }


def _described_text(opened: Table) -> str:
    import msgspec

    from lakebed.config.settings import TableSettings

    schema = opened.schema
    width = max(len(field.name) for field in schema.fields)
    lines = [f"table {opened.name}", ""]
    for role, fields in (
        ("row key", schema.row_keys),
        ("sort key", schema.sort_keys),
        ("value", schema.values),
    ):
        lines += [
            f"  {role:<8}  {field.name:<{width}}  {field.type}{'?' if field.nullable else ''}"
            for field in fields
        ]
    if schema.past:
        lines += ["", f"fields, version {schema.version}", ""]
        lines += [
            f"  {version.version}: {', '.join(map(str, version.changes))}"
            for version in schema.past
        ]
    if opened.processing is not None:
        lines += ["", "processing", ""]
        for name, part in processing_json(opened.processing, schema).items():
            lines.append(f"  {name} {json.dumps(part)}")
    default = msgspec.to_builtins(TableSettings())
    settings = msgspec.to_builtins(opened.settings)
    lines += ["", "settings (* changed)", ""]
    for name, value in settings.items():
        mark = "*" if value != default[name] else " "
        lines.append(f"{mark} {name} = {value}")
    return "\n".join(lines)
