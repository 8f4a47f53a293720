"""`lakebed report`: figures of a lake in rows, for people, programs and files."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from lakebed.cli.program import (
    Command,
    Session,
    aligned,
    arguments_as,
    pass_session,
    time_text,
)
from lakebed.errors import InvalidError, UnavailableError

if TYPE_CHECKING:
    from lakebed.inspection.report import Report, ReportColumn, Value

NAMES = (
    *("partitions", "files", "jobs", "tasks", "batches", "queries"),
    *("dead-letters", "costs", "status"),
)
CELL_CHARACTERS_MAX = 60
ROWS_MAX = 100_000


class ReportArguments(msgspec.Struct, frozen=True, kw_only=True):
    """The arguments of `lakebed report`."""

    name: str
    table: str | None
    since: float | None
    limit: int
    as_csv: bool
    parquet: Path | None


@click.command(
    cls=Command,
    examples="""
    lakebed report partitions trips
    lakebed report jobs --since 86400
    lakebed report files trips --csv
    lakebed report status --json
    lakebed report costs --since 604800 --csv
    lakebed report jobs trips --parquet jobs.parquet
    """,
)
@click.argument("name", type=click.Choice(NAMES))
@click.argument("table", required=False)
@click.option(
    "--since",
    type=click.FloatRange(min=0),
    metavar="SECONDS",
    help="Of jobs and tasks, those that were last heard of at most so long ago; batches that were"
    " planned, and usage that was counted, since then.",
)
@click.option(
    "--limit",
    type=click.IntRange(1, ROWS_MAX),
    default=ROWS_MAX,
    help="At most so many rows; of jobs and tasks the newest.",
)
@click.option("--csv", "as_csv", is_flag=True, help="Write lines with commas.")
@click.option(
    "--parquet",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write a file of Parquet; one that is there is replaced.",
)
@pass_session
@arguments_as(ReportArguments)
def report(session: Session, asked: ReportArguments) -> None:
    """Report partitions, files, jobs, tasks, batches, queries, dead letters, costs or the status of
    TABLE, or of all tables.

    Costs are of each day, table and kind of work, queries of each hour and table, as the ledger
    counted them; queries that came as messages are among the jobs, one by one. Of partitions it
    says which will be split, by which key and where, and of the others how many more rows they take
    until then. A table that cannot be read is named on stderr, with the reason, and the exit code
    is that of `unavailable`; the rows of the others are written all the same.
    """
    if sum((session.as_json, asked.as_csv, asked.parquet is not None)) > 1:
        hint = "choose one of --json, --csv and --parquet"
        raise InvalidError("a report is written in one form", hint=hint)
    from lakebed.cli.row_commands.row_formats import check_output, write_file, write_rows

    if asked.parquet is not None:
        check_output(asked.parquet)
    with session.open() as lake:
        found = lake.report(asked.name, asked.table, since_seconds=asked.since, limit=asked.limit)
    if asked.parquet is not None:
        rows = write_file(found.table().to_reader(), "parquet", asked.parquet)
        session.say(f"{rows:,} rows in {asked.parquet}")
    elif asked.as_csv:
        write_rows(found.table().to_reader(), "csv", sys.stdout.buffer)
    else:
        session.give(found.values(), report_text(found))
    for why in found.failed:
        click.echo(f"could not be told: {why}", err=True)
    sys.exit(UnavailableError.exit_code if found.failed else 0)


def report_text(found: Report) -> str:
    """Return the columns that people are shown."""
    shown = [(n, column) for n, column in enumerate(found.columns) if column.heading]
    rows = ([_cell(column, row[n]) for n, column in shown] for row in found.rows)
    return aligned([column.heading for _, column in shown], rows)


def _cell(column: ReportColumn, value: Value) -> str:
    if value is None or value == "":
        return ""
    match column.kind:
        case "time":
            return time_text(int(value))
        case "flag":
            return "yes" if value else ""
        case "count":
            return f"{value:,}"
        case "real":
            return f"{value:.2g}" if 0 < abs(float(value)) < 1 else f"{value:,.2f}"
    text = str(value) if str(value).isprintable() else ascii(value)
    return text if len(text) <= CELL_CHARACTERS_MAX else f"{text[: CELL_CHARACTERS_MAX - 3]}..."
