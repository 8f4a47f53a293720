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
_TABLES = {"table", "old"}
_COLUMNS = {"columns", "ranges", "keys"}


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
    """Names of columns, with commas between; before `=` where a value follows."""

    name = "column"

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return the columns of the command's table whose names begin as the last one does."""
        names: list[str] = []
        with suppress(Exception), _lake(ctx) as lake:
            table = ctx.params["table"] or ctx.args[0]  # an option without a value ends the parser
            schema = lake.table(table).schema
            fields = schema.fields if param.name == "columns" else schema.row_keys
            names = [field.name for field in fields]
        before, comma, last = incomplete.rpartition(",")
        end = "" if param.name == "columns" else "="
        return [
            CompletionItem(f"{before}{comma}{name}{end}") for name in names if name.startswith(last)
        ]


def complete_words(command: click.Command) -> None:
    """Let the arguments and options of a command, and of all below it, complete what a lake has."""
    if isinstance(command, click.Group):
        for one in command.commands.values():
            complete_words(one)
    is_of_table = command.name != "create"
    for param in command.params:
        if isinstance(param, click.Argument) and is_of_table:
            is_name = param.name == "name" and command.name in _NAMED
            if param.name in _TABLES or is_name:
                param.type = TableWord()
        elif isinstance(param, click.Option) and param.name in _COLUMNS:
            param.type = ColumnWord()


_NAMED = {
    "alter",
    "clear",
    "describe",
    "drop",
    "history",
    "offline",
    "online",
    "set",
    "split-points",
}


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
