"""`lakebed completion`: words, tables and columns that the shell completes."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem, get_completion_class

from lakebed.cli.program import Command, Session, pass_session

if TYPE_CHECKING:
    from lakebed.lake import Lake

SHELLS = ("bash", "zsh", "fish")
VARIABLE = "_LAKEBED_COMPLETE"
COLUMNS, ROW_KEYS, VALUES = "fields", "row_keys", "values"
_TABLES = {"table", "tables", "old"}
_OF_COLUMNS = {
    "columns": (COLUMNS, ""),
    "keys": (ROW_KEYS, "="),
    "ranges": (ROW_KEYS, "="),
    "zones": (COLUMNS, "="),
    "rename": (COLUMNS, "="),
    "drop": (VALUES, ""),
    "widen": (VALUES, ":"),
}
"""Options that name columns: which of them, and what follows a name."""


class TableWord(click.types.StringParamType):
    """The name of a table that there is."""

    name = "table"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return the tables whose names begin so."""
        names: list[str] = []
        with suppress(Exception), _lake(ctx) as lake:  # a shell that completes shows no errors
            names = lake.tables()
        return [CompletionItem(name) for name in names if name.startswith(incomplete)]


class ColumnWord(click.types.StringParamType):
    """Names of columns, with commas between; before `=` or `:` where more follows.

    kind: an attribute of a schema, COLUMNS, ROW_KEYS or VALUES. end: what follows a name.
    """

    name = "column"

    def __init__(self, kind: str, end: str) -> None:
        self._kind = kind
        self._end = end

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return the columns of the command's table whose names begin as the last one does."""
        names: list[str] = []
        with suppress(Exception), _lake(ctx) as lake:
            table = ctx.params.get("table") or ctx.params.get("name")
            schema = lake.table(table or ctx.args[0]).schema  # without a value the parser ends
            names = [field.name for field in getattr(schema, self._kind)]
        before, comma, last = incomplete.rpartition(",")
        found = [name for name in names if name.startswith(last)]
        return [CompletionItem(f"{before}{comma}{name}{self._end}") for name in found]


def complete_words(command: click.Command, group: str | None = None) -> None:
    """Let the arguments and options of a command, and of all below it, complete what a lake has.

    group: the name of the command's group.
    """
    if isinstance(command, click.Group):
        for one in command.commands.values():
            complete_words(one, command.name)
    if (group, command.name) == ("table", "create"):  # its table and columns are new
        return
    for param in command.params:
        if param.name in _TABLES or (group, param.name) == ("table", "name"):
            param.type = TableWord()
        elif isinstance(param, click.Option) and param.name in _OF_COLUMNS:
            param.type = ColumnWord(*_OF_COLUMNS[param.name])


@click.command(
    cls=Command,
    examples="""
    lakebed completion bash >> ~/.bashrc
    lakebed completion zsh >> ~/.zshrc
    lakebed completion fish > ~/.config/fish/completions/lakebed.fish
    """,
)
@click.argument("shell", type=click.Choice(SHELLS))
@pass_session
def completion(session: Session, shell: str) -> None:
    """Write what makes SHELL complete commands, options, tables and columns.

    Tables are those of the lake that --lake or LAKEBED_LAKE names.
    """
    root = click.get_current_context().find_root().command
    found = get_completion_class(shell)
    assert found is not None, "one of SHELLS"
    source = found(root, {}, "lakebed", VARIABLE).source_template % {
        "complete_func": "_lakebed_completion",
        "complete_var": VARIABLE,
        "prog_name": "lakebed",
    }
    session.give({"shell": shell, "source": source}, source)


def _lake(ctx: click.Context) -> Lake:
    return ctx.ensure_object(Session).open()
