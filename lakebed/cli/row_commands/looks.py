"""`lakebed count`, `head`, `sample` and `files`: a look at a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click
import msgspec

from lakebed.cli.program import Command, Session, aligned, arguments_as, pass_session
from lakebed.cli.row_commands.asked_rows import asked_of, capped, chosen_rows, chosen_version
from lakebed.cli.row_commands.rows import give_count, write_out
from lakebed.model.keys import KeyValue, key_value_text

if TYPE_CHECKING:
    import pyarrow as pa

    from lakebed.cli.row_commands.row_formats import Format
    from lakebed.model.schema import Field
    from lakebed.query.table_files import TableFile


class CountArguments(msgspec.Struct, frozen=True, kw_only=True):
    """The arguments of `lakebed count`."""

    table: str
    keys: tuple[str, ...]
    ranges: tuple[str, ...]
    where: str | None
    scan_bytes_max: int | None
    as_of: str | None


@click.command(
    cls=Command,
    examples="""
    lakebed count trips
    lakebed count flights --key UA
    lakebed count flights --range carrier=AA..B6 --where "distance > 1000"
    lakebed count trips --as-of 2026-11-25T10:00Z
    """,
)
@click.argument("table")
@chosen_rows
@capped
@chosen_version
@pass_session
@arguments_as(CountArguments)
def count(session: Session, given: CountArguments) -> None:
    """Say how many rows TABLE has, or how many of them lie in ranges and pass a test.

    All rows are counted from the table's state, where it keeps them as they came.
    """
    with session.open() as lake:
        opened = lake.table(given.table)
        asked = asked_of(opened.schema, given)
        own = {"scan_bytes_max": given.scan_bytes_max, "as_of": given.as_of}
        give_count(session, opened, asked | own)


@click.command(
    cls=Command,
    examples="""
    lakebed head trips
    lakebed head trips --rows 3 --json
    lakebed head trips --as-of 2013-q1
    """,
)
@click.argument("table")
@click.option("--rows", type=int, default=10, show_default=True, metavar="N", help="How many.")
@chosen_version
@pass_session
def head(session: Session, table: str, rows: int, as_of: str | None) -> None:
    """Write the first rows of TABLE by key. With --json as JSON lines."""
    with session.open() as lake:
        _write(session, lake.table(table).head(rows, as_of=as_of))


@click.command(
    cls=Command,
    examples="""
    lakebed sample trips
    lakebed sample trips --rows 1000 --seed 7 --json
    """,
)
@click.argument("table")
@click.option("--rows", type=int, default=10, show_default=True, metavar="N", help="How many.")
@click.option("--seed", type=int, metavar="N", help="The same rows again for the same number.")
@chosen_version
@pass_session
def sample(session: Session, table: str, rows: int, seed: int | None, as_of: str | None) -> None:
    """Write rows of TABLE that are drawn by lot, each with the same chance. With --json as lines.

    A row group is read for each row, at most 128; small tables, and those that merge rows, whole.
    """
    with session.open() as lake:
        _write(session, lake.table(table).sample(rows, seed=seed, as_of=as_of))


@click.command(
    cls=Command,
    examples="""
    lakebed files trips
    lakebed files trips --json
    lakebed files trips --as-of 2013-q1
    """,
)
@click.argument("table")
@chosen_version
@pass_session
def files(session: Session, table: str, as_of: str | None) -> None:
    """List the files of TABLE for programs that read Parquet themselves, by leaf in key order.

    All rows, each once: those whose row keys lie from MIN to below MAX of the line. A file that
    leaves share has a line for each; where WHOLE is yes, all of its rows are in the range.
    """
    with session.open() as lake:
        opened = lake.table(table)
        fields, found = opened.schema.row_keys, opened.files(as_of=as_of)
    lines = (_line(fields, file) for file in found)
    headings = ("PATH", "MIN", "MAX", "ROWS", "BYTES", "WHOLE")
    session.give(msgspec.to_builtins(found), aligned(headings, lines, empty="no files"))


def _line(fields: Sequence[Field], file: TableFile) -> tuple[str, ...]:
    return (
        file.path,
        _key(fields, file.min),
        _key(fields, file.max),
        f"{'' if file.exact else 'about '}{file.rows:,}",
        f"{file.bytes:,}",
        "yes" if file.whole else "no",
    )


def _key(fields: Sequence[Field], values: tuple[KeyValue, ...] | None) -> str:
    if values is None:
        return "-"
    text = ",".join(key_value_text(f, v) for f, v in zip(fields, values, strict=False))
    return text if text.isprintable() else ascii(text)


def _write(session: Session, rows: pa.Table) -> None:
    chosen: Format = "jsonl" if session.as_json else "table"
    write_out(rows.to_reader(), chosen, peek=False, silent=True)
