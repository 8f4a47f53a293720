"""`lakebed upsert`: rows replace those with the same keys."""

from __future__ import annotations

from typing import Literal

import click

from lakebed.cli.program import Command, Session, pass_session
from lakebed.cli.row_commands.rows import file_arguments, rows_named, show_ingested


@click.command(
    cls=Command,
    examples="""
    lakebed upsert orders today.parquet
    lakebed upsert orders today.csv --job 2024-06-01
    """,
)
@file_arguments
@pass_session
def upsert(
    session: Session,
    *,
    table: str,
    paths: tuple[str, ...],
    job: str | None,
    format: Literal["parquet", "csv", "jsonl"] | None,
    extra_columns: Literal["refuse", "drop"],
) -> None:
    """Take rows of files into TABLE, where each replaces an older one with the same keys.

    For tables with `latest` processing: of equal keys the row with the greatest sequence is shown.
    `lakebed ingest` does the same there, and has more options.
    """
    with session.open() as lake:
        done = lake.table(table).upsert(
            rows_named(paths), job=job, format=format, extra_columns=extra_columns
        )
    show_ingested(session, table, done)
