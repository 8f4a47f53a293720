"""Reads options for rows and columns, and makes of them what the library takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

import click

from lakebed.cli.row_commands.key_text import key_from_text, ranges_from_text
from lakebed.model.predicates.text import predicate_from_text

if TYPE_CHECKING:
    from lakebed.model.schema import Schema


class ChosenRows(Protocol):
    """The choice of rows that the options of a command make."""

    @property
    def keys(self) -> tuple[str, ...]: ...
    @property
    def ranges(self) -> tuple[str, ...]: ...
    @property
    def where(self) -> str | None: ...


def chosen_rows(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that say which rows."""
    for option in (
        click.option(
            "--where",
            metavar="TEST",
            help="Only rows where: \"fare >= 4 and (vehicle in ('a1', 'b7') or note like 'ab%')\"."
            " Tests of row keys spare reading, as --key and --range do.",
        ),
        click.option(
            "--range",
            "ranges",
            multiple=True,
            metavar="FIELD=MIN..MAX",
            help="MIN and above, below MAX; an empty end is unbounded. Ranges of one field are"
            " alternatives, those of several fields must all hold.",
        ),
        click.option(
            "--key",
            "keys",
            multiple=True,
            metavar="V[,V]",
            help="Exact key, or its first values; also FIELD=V,FIELD=V. Several are a union.",
        ),
    ):
        command = option(command)
    return command


def chosen_columns(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the option that says which columns."""
    option = click.option("--columns", metavar="A,B", help="Columns to read.  [default: all]")
    return option(command)


def chosen_version(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the option that says which version."""
    option = click.option(
        "--as-of",
        metavar="VERSION",
        help="An older version: a log number, a time like 2026-11-25T10:00Z, or a tag.",
    )
    return option(command)


def capped(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the option that says how much it may read."""
    option = click.option(
        "--scan-bytes-max",
        type=int,
        metavar="BYTES",
        help="Read at most so many bytes of files.  [default: the table's setting]",
    )
    return option(command)


def asked_of(schema: Schema, given: ChosenRows) -> dict[str, Any]:
    """Return which rows, as `Table.query` takes them. Raises: InvalidError."""
    return {
        "keys": [key_from_text(schema, key) for key in given.keys] or None,
        "ranges": ranges_from_text(schema, given.ranges) if given.ranges else None,
        "where": predicate_from_text(given.where) if given.where is not None else None,
    }


def columns_of(columns: str | None) -> list[str] | None:
    """Return the columns that are asked for; None: all."""
    return columns.split(",") if columns is not None else None
