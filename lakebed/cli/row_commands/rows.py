"""`lakebed ingest` and `lakebed query`: rows in, rows out."""

from __future__ import annotations

import sys
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click
import msgspec

from lakebed.cli.program import Command, Session, arguments_as, counted, pass_session
from lakebed.cli.progress import ProgressLine
from lakebed.cli.row_commands.asked_rows import (
    asked_of,
    capped,
    chosen_columns,
    chosen_rows,
    chosen_version,
    columns_of,
)
from lakebed.cli.row_commands.key_text import zones_from_text
from lakebed.errors import InvalidError
from lakebed.model.addresses import scheme_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pyarrow as pa

    from lakebed.cli.row_commands.row_formats import Format
    from lakebed.table import Table
    from lakebed.tasks.user_jobs import Ingested

ROWS_SHOWN = 40
"""Rows of a table for people, unless they ask for more."""


class IngestArguments(msgspec.Struct, frozen=True, kw_only=True):
    """The arguments of `lakebed ingest`."""

    table: str
    paths: tuple[str, ...]
    job: str | None
    format: Literal["parquet", "csv", "jsonl"] | None
    extra_columns: Literal["refuse", "drop"]
    zones: tuple[str, ...]
    delimiter: str | None
    skip_unreadable: bool


class QueryArguments(msgspec.Struct, frozen=True, kw_only=True):
    """The arguments of `lakebed query`."""

    table: str
    keys: tuple[str, ...]
    ranges: tuple[str, ...]
    columns: str | None
    where: str | None
    limit: int | None
    scan_bytes_max: int | None
    format: Format | None
    output: Path | None
    count: bool
    explain: bool
    as_of: str | None


def file_arguments(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command what each needs that takes rows of files into a table."""
    for option in (
        click.option(
            "--extra-columns",
            type=click.Choice(["refuse", "drop"]),
            default="refuse",
            show_default=True,
            help="What to do with columns that the table does not have.",
        ),
        click.option(
            "--format",
            type=click.Choice(["parquet", "csv", "jsonl"]),
            help="Format of the files.  [default: by their names]",
        ),
        click.option(
            "--job",
            metavar="ID",
            help="Name of this request, which is done once, however often sent.",
        ),
        click.argument("paths", nargs=-1, required=True),
        click.argument("table"),
    ):
        command = option(command)
    return command


@click.command(
    cls=Command,
    examples="""
    lakebed ingest trips trips.parquet
    lakebed ingest trips january/ february/ --job 2013-q1
    lakebed ingest trips trips.txt --format csv --extra-columns drop
    gunzip -c trips.csv.gz | lakebed ingest trips - --format csv --delimiter ";"
    lakebed ingest trips s3://bucket/day/ https://example.org/late.csv
    lakebed ingest trips trips.csv --zone UTC
    lakebed ingest trips trips.csv --zone Europe/Berlin --zone booked=UTC
    """,
)
@file_arguments
@click.option(
    "--zone",
    "zones",
    multiple=True,
    metavar="[FIELD=]ZONE",
    help="Zone of times without an offset: UTC, Europe/Berlin; for one field: at=UTC.",
)
@click.option("--delimiter", metavar="LETTER", help="Separator of CSV: `;`, tab.  [default: comma]")
@click.option(
    "--skip-unreadable", is_flag=True, help="Skip files that cannot be read, and list them."
)
@pass_session
@arguments_as(IngestArguments)
def ingest(session: Session, given: IngestArguments) -> None:
    """Take rows of files, or of directories of them, into TABLE: all or none.

    Parquet, CSV with a header, JSON lines or an array: .parquet, .csv, .tsv, .jsonl, .ndjson,
    .json, text also behind .gz. Also from s3://BUCKET/KEY or s3://BUCKET/FOLDER/, and
    https://HOST/PATH; `-` is stdin, with --format.
    """
    with session.open() as lake, ProgressLine(silent=session.as_json) as line:
        opened = lake.table(given.table)
        done = opened.ingest(
            rows_named(given.paths),
            job=given.job,
            format=given.format,
            extra_columns=given.extra_columns,
            delimiter=given.delimiter,
            skip_unreadable=given.skip_unreadable,
            zone=zones_from_text(opened.schema, given.zones) if given.zones else None,
            on_progress=lambda rows: line.count("read", rows),
            written=lambda rows, total: line.count("written", rows, total),
        )
    show_ingested(session, given.table, done)


def rows_named(paths: tuple[str, ...]) -> object:
    """Return what the library takes: paths, or stdin."""
    if "-" not in paths:
        return list(paths)
    if len(paths) > 1:
        hint = "ingest the files in a command of their own"
        raise InvalidError("stdin cannot be combined with files", hint=hint)
    return sys.stdin.buffer


def show_ingested(session: Session, table: str, done: Ingested) -> None:
    """Say what became of a job that takes rows in."""
    value = {
        "table": table,
        "job": done.job,
        "number": done.number,
        "rows": done.rows,
        "files": done.files,
        "repeated": done.repeated,
        "read": done.read,
        "filtered": done.filtered,
        "skipped": dict(done.skipped),
    }
    for path, why in done.skipped.items():
        click.echo(f"skipped {path}: {why}", err=True)
    taken = f"{counted(done.rows, 'row')} in {counted(done.files, 'file')}"
    if done.filtered:
        taken += f" ({done.read:,} read, {done.filtered:,} left out by filter or age-off)"
    said = f"{taken}, job {done.job}, log entry {done.number}"
    if done.repeated:
        said = f"job {done.job} was done before, in log entry {done.number}: nothing to do"
    session.give(value, said)
    if done.all_left_out:
        rows = counted(done.read, "row")
        click.echo(f"warning: filter or age-off of {table} left out all {rows}", err=True)
        click.echo(f"  hint: `lakebed table describe {table}` shows what it leaves out", err=True)


@click.command(
    cls=Command,
    examples="""
    lakebed query trips --key b7
    lakebed query flights --key UA,1545
    lakebed query flights --key carrier=UA,flight=1545 --columns time_hour,dest
    lakebed query flights --range carrier=AA..B6 --range flight=100..200
    lakebed query flights --where "distance > 1000 and carrier in ('UA', 'AA')"
    lakebed query flights --where "carrier = 'UA' and dest like 'S%' and flight between 1 and 99"
    lakebed query flights --output flights.csv
    lakebed query flights --json --limit 5
    lakebed query flights --count --where "carrier = 'UA'"
    lakebed query flights --key UA,1545 --explain
    lakebed query flights --as-of 2013-q1 --count
    """,
)
@click.argument("table")
@chosen_rows
@chosen_columns
@click.option("--limit", type=int, metavar="N", help="At most so many rows.")
@capped
@click.option(
    "--format",
    type=click.Choice(["table", "jsonl", "csv", "parquet"]),
    help=f"Format of the output.  [default: by the name of --output; else table, which shows"
    f" {ROWS_SHOWN} rows unless --limit is given]",
)
@click.option(
    "--output",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write to a file: .parquet, .csv, .jsonl, also .csv.gz.",
)
@click.option("--count", is_flag=True, help="Write how many rows instead of the rows.")
@click.option("--explain", is_flag=True, help="Write what was read instead of the rows.")
@chosen_version
@pass_session
@arguments_as(QueryArguments)
def query(session: Session, given: QueryArguments) -> None:
    """Write the rows of TABLE, in key order. With --json as JSON lines.

    JSON has integers beyond 2^53 as strings and binary as base64.
    """
    chosen, limit = _format(session, given), given.limit
    peek = chosen == "table" and limit is None and given.output is None
    with session.open() as lake:
        opened = lake.table(given.table)
        asked = {
            **asked_of(opened.schema, given),
            "scan_bytes_max": given.scan_bytes_max,
            "as_of": given.as_of,
        }
        if given.count:
            give_count(session, opened, asked)
            return
        asked["columns"] = columns_of(given.columns)
        if given.explain:
            with ProgressLine(silent=session.as_json).reading():
                explanation = opened.explain(**asked, limit=limit)
            session.give(msgspec.to_builtins(explanation), str(explanation))
            return
        rows = opened.query(**asked, limit=ROWS_SHOWN + 1 if peek else limit)
        if given.output is not None:
            write_to_file(session, rows, chosen, given.output)
        else:
            write_out(rows, chosen, peek=peek, silent=session.as_json)


def give_count(session: Session, table: Table, asked: Mapping[str, Any]) -> None:
    """Count rows, and say how many there are."""
    with ProgressLine(silent=session.as_json).reading() as line:
        found = table.count(**asked, on_progress=lambda rows: line.count("counted", rows))
    session.give({"rows": found}, f"{found}")


def write_to_file(
    session: Session, rows: pa.RecordBatchReader, format: Format, output: Path
) -> None:
    """Write rows to a file, and say how many there were."""
    from lakebed.cli.row_commands.row_formats import write_file

    with ProgressLine(silent=session.as_json).reading() as line:
        written = write_file(
            rows, format, output, on_progress=lambda rows: line.count("written", rows)
        )
    said = f"{counted(written, 'row')} in {output}"
    session.give({"rows": written, "output": str(output)}, said)


def write_out(rows: pa.RecordBatchReader, format: Format, *, peek: bool, silent: bool) -> None:
    """Write rows to stdout.

    peek: ROWS_SHOWN of them, and say when there are more.
    silent: say no progress.

    On a terminal the first rows end progress: from then on rows show it themselves.
    """
    from lakebed.cli.row_commands.row_formats import write_rows

    out = sys.stdout.buffer
    if not peek:
        if sys.stdout.isatty():
            rows, silent = _begun(rows, silent=silent), True
        with ProgressLine(silent=silent).reading() as line:
            written = write_rows(
                rows, format, out, on_progress=lambda rows: line.count("written", rows)
            )
    else:
        with ProgressLine(silent=silent).reading():
            held = rows.read_all()  # at most ROWS_SHOWN + 1 rows
        shown = held.slice(0, ROWS_SHOWN)
        written = write_rows(shown.to_reader(), format, out)
        if held.num_rows > ROWS_SHOWN:
            out.flush()
            click.echo(f"the first {ROWS_SHOWN} rows; --limit shows more", err=True)
    out.flush()
    if format == "table" and not written:
        click.echo("no rows", err=True)


def _begun(rows: pa.RecordBatchReader, *, silent: bool) -> pa.RecordBatchReader:
    """Return the same rows, once the first are there. silent: say no progress until then."""
    import pyarrow as pa

    with ProgressLine(silent=silent).reading():
        first = list(islice((batch for batch in rows if batch.num_rows), 1))
    return pa.RecordBatchReader.from_batches(rows.schema, chain(first, rows))


def _format(session: Session, given: QueryArguments) -> Format:
    """Return as what rows are written. Raises: InvalidError for options that do not go together."""
    others = given.format or given.output or given.columns or given.explain
    if given.count and (others or given.limit is not None):
        hint = "--count goes with --key, --range, --where and --json"
        raise InvalidError("--count cannot be combined with output options", hint=hint)
    return output_format(session, given.format, given.output, explain=given.explain)


def output_format(
    session: Session, format: Format | None, output: Path | None, *, explain: bool
) -> Format:
    """Return as what rows are written. explain: none are.

    Raises:
        InvalidError: options that do not go together, a place where no file can appear.
    """
    from lakebed.cli.row_commands.row_formats import check_output, format_named

    if output is not None and scheme_of(output) is not None:
        hint = "write it to a file of this machine, then copy that"
        raise InvalidError("rows go to files of this machine", output=output, hint=hint)
    if output is not None:
        check_output(output)
    if format == "parquet" and output is None:
        raise InvalidError("Parquet needs a file", hint="add --output FILE")
    if explain and (format is not None or output is not None):
        hint = "leave --format and --output out; --json is possible"
        raise InvalidError("--explain writes no rows", hint=hint)
    if format is None and output is not None:
        return format_named(output)
    return format or ("jsonl" if session.as_json else "table")
