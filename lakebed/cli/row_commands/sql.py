"""`lakebed sql`: a question in SQL, and its rows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from lakebed.cli.program import Command, Session, arguments_as, pass_session
from lakebed.cli.progress import ProgressLine
from lakebed.cli.row_commands.asked_rows import capped
from lakebed.cli.row_commands.rows import output_format, write_out, write_to_file
from lakebed.errors import InvalidError

if TYPE_CHECKING:
    from lakebed.cli.row_commands.row_formats import Format
    from lakebed.sql.asked_versions import AsOfTables
    from lakebed.sql.sql_work import Parameters


class SqlArguments(msgspec.Struct, frozen=True, kw_only=True):
    """The arguments of `lakebed sql`."""

    text: str
    parameters: tuple[str, ...]
    format: Format | None
    output: Path | None
    explain: bool
    as_of: tuple[str, ...]
    scan_bytes_max: int | None


@click.command(
    cls=Command,
    examples="""
    lakebed sql "select carrier, count(*) from flights group by carrier order by 2 desc"
    lakebed sql "select * from flights where carrier = ? and flight = ?" --param UA --param 1545
    lakebed sql "select * from trips where id = \\$id" --param id=b7 --json
    lakebed sql "select * from trips where fare > 4" --output trips.parquet
    lakebed sql "select * from lakebed.files where table = 'trips'"
    lakebed sql "select count(*) from trips where id >= 'a' and id < 'c'" --explain
    lakebed sql "select count(*) from trips" --as-of 2026-q3
    lakebed sql "select * from trips join cities using (city)" --as-of trips=41 --as-of cities=7
    """,
)
@click.argument("text")
@click.option(
    "--param",
    "parameters",
    multiple=True,
    metavar="[NAME=]VALUE",
    help="Value of a ?, in their order; of $NAME with its name.",
)
@click.option(
    "--format",
    type=click.Choice(["table", "jsonl", "csv", "parquet"]),
    help="Format of the output.  [default: by the name of --output; else table]",
)
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write to a file: .parquet, .csv, .jsonl, also .csv.gz.",
)
@click.option("--explain", is_flag=True, help="Write what was read instead of the rows.")
@click.option(
    "--as-of",
    multiple=True,
    metavar="[TABLE=]VERSION",
    help="An older version, of all tables or of one: a log number, a time, or a tag.",
)
@capped
@pass_session
@arguments_as(SqlArguments)
def sql(session: Session, given: SqlArguments) -> None:
    """Write the rows that SELECT gives: TEXT is one, over tables of the lake and those in the
    schema lakebed: files, leaves, jobs, log, metrics.
    """
    chosen = output_format(session, given.format, given.output, explain=given.explain)
    parameters = _parameters(given.text, given.parameters)
    as_of = _as_of(given.as_of)
    with session.open() as lake:
        if given.explain:
            cap = given.scan_bytes_max
            with ProgressLine(silent=session.as_json).reading():
                explanation = lake.explain_sql(
                    given.text, parameters, as_of=as_of, scan_bytes_max=cap
                )
            session.give(msgspec.to_builtins(explanation), str(explanation))
            return
        with ProgressLine(silent=session.as_json).reading() as line:
            rows = lake.sql(
                given.text,
                parameters,
                as_of=as_of,
                scan_bytes_max=given.scan_bytes_max,
                on_progress=lambda read: line.count("read", read),
            )
        if given.output is not None:
            write_to_file(session, rows, chosen, given.output)
        else:
            write_out(rows, chosen, peek=False, silent=session.as_json)


def _parameters(text: str, given: tuple[str, ...]) -> Parameters:
    """Return values by position, or by name where the text has names. All are text, which the
    engine turns into what it is compared with."""
    if "?" in text or not given:
        return given
    pairs = [one.partition("=") for one in given]
    if not all(equals for _, equals, _ in pairs):
        hint = "write --param VALUE for each ?, or --param NAME=VALUE for $NAME"
        raise InvalidError("a parameter has no name", parameter=given[0], hint=hint)
    if len({name for name, _, _ in pairs}) < len(pairs):
        raise InvalidError("a parameter is named twice", hint="name each once")
    return {name: value for name, _, value in pairs}


def _as_of(given: tuple[str, ...]) -> AsOfTables | None:
    """Return one version of all tables, or a version by the name of each."""
    if len(given) < 2 and "=" not in "".join(given):
        return given[0] if given else None
    pairs = [one.partition("=") for one in given]
    if not all(equals for _, equals, _ in pairs):
        hint = "write --as-of VERSION once, or --as-of TABLE=VERSION for each table"
        raise InvalidError("a version of which table", as_of=", ".join(given), hint=hint)
    if len({name for name, _, _ in pairs}) < len(pairs):
        raise InvalidError("a table is named twice", as_of=", ".join(given), hint="name each once")
    return {name: version for name, _, version in pairs}
