"""Defines what all commands share: options, help that begins with examples, errors with a hint and
a code."""

from __future__ import annotations

import functools
import json
import logging
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from lakebed.cli.shell_words import in_shell_words
from lakebed.errors import InvalidError, LakebedError
from lakebed.model.names import MICROS_PER_SECOND

if TYPE_CHECKING:
    from lakebed.lake import Lake

EXIT_BUG = 1
EXIT_STOPPED = 130

_AWS = "pip install 'lakebed[aws]', or -r requirements/aws.txt"
_LOCAL = "pip install -r requirements/deploy.txt -r requirements/local.txt, in a checkout"
PACKAGES = {
    **dict.fromkeys(("boto3", "botocore", "obstore"), _AWS),
    "duckdb": "pip install 'lakebed[sql]', or -r requirements/sql.txt",
    **dict.fromkeys(("aws_cdk", "cdk_nag", "constructs", "ministack"), _LOCAL),
}
"""Packages that only some commands need, each with the command that installs it."""
LAKE_VARIABLE = "LAKEBED_LAKE"


class Session:
    """The values of the options that every command has."""

    def __init__(self) -> None:
        self.lake_path = os.environ.get(LAKE_VARIABLE) or "lake"
        self.as_json = False
        self.verbose = False

    def open(self, *, create: bool = False, objects: str | None = None) -> Lake:
        """Return the lake that the options name, made if there is none and `create` is true.
        objects: where it keeps them, if that is given."""
        from lakebed.lake import connect

        try:
            return connect(self.lake_path, create=create, objects=objects)
        except LakebedError as error:
            self._name_the_folder(error)
            raise

    def _name_the_folder(self, error: LakebedError) -> None:
        """Add to the hint that a folder has the name for which an instance was looked."""
        name = self.lake_path.removeprefix("aws:")
        if name != self.lake_path and Path(name).is_dir():
            folder = f"a folder here has this name: `--lake {name}` opens it"
            error.hint = f"{error.hint}; {folder}" if error.hint else folder

    def say(self, text: str) -> None:
        """Tell people; silent with --json."""
        if not self.as_json:
            click.echo(text)

    def give(self, value: object, text: str) -> None:
        """Write a result: the value with --json, else the text."""
        click.echo(json.dumps(value, default=str) if self.as_json else text)


pass_session = click.make_pass_decorator(Session, ensure=True)


def arguments_as(
    record: Callable[..., Any],
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Hand a command all its arguments and options as one record, whose fields they are."""

    def of_command(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def called(session: Session, **values: object) -> None:
            command(session, record(**values))

        return called

    return of_command


class Command(click.Command):
    """A command. examples: lines that its help begins with, ready to be typed."""

    def __init__(
        self,
        *args: Any,  # noqa: ANN401 - for click
        examples: str = "",
        **kwargs: Any,  # noqa: ANN401 - for click
    ) -> None:
        super().__init__(*args, **kwargs)
        self.examples = _lines(examples)
        self.params += _everywhere()

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write examples, then what click writes."""
        _write_examples(formatter, self.examples)
        super().format_help(ctx, formatter)


class CommandGroup(Command, click.Group):
    """Commands under one noun."""

    command_class = Command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command; an unknown one is answered with the nearest known one."""
        from lakebed.errors import did_you_mean

        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            hint = did_you_mean(args[0], self.list_commands(ctx), what="command")
            raise InvalidError("no such command", command=args[0], hint=hint)
        return super().resolve_command(ctx, args)


class Program(CommandGroup):
    """The whole command: turns every end into an exit code, every error into a sentence."""

    group_class = CommandGroup

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,  # noqa: FBT001, FBT002 - click's signature
        **extra: Any,  # noqa: ANN401 - click's signature
    ) -> NoReturn:
        """Run and exit."""
        given = list(sys.argv[1:] if args is None else args)
        session = Session()
        try:
            code = super().main(
                given, prog_name, complete_var, standalone_mode=False, obj=session, **extra
            )
            sys.stdout.flush()
        except click.exceptions.NoArgsIsHelpError as asked:  # a noun alone: its help, no mistake
            click.echo(asked.ctx.get_help())
            code = 0
        except LakebedError as error:
            code = _show_error(error, as_json=session.as_json or "--json" in given)
        except click.ClickException as error:
            code = _show_error(_refused(error), as_json=session.as_json or "--json" in given)
        except (click.Abort, KeyboardInterrupt):
            click.echo("stopped", err=True)
            code = EXIT_STOPPED
        except BrokenPipeError:  # the reader has seen enough, as `head` does
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            code = 0
        except ModuleNotFoundError as error:
            wanted = PACKAGES.get((error.name or "").partition(".")[0])
            if wanted is None:
                if session.verbose:
                    raise
                code = _show_bug(error)
            else:
                code = _show_error(_not_installed(error, wanted), as_json=session.as_json)
        except Exception as error:
            if session.verbose:
                raise
            code = _show_bug(error)
        sys.exit(code if isinstance(code, int) else 0)


def _not_installed(error: ModuleNotFoundError, wanted: str) -> InvalidError:
    package = (error.name or "").partition(".")[0]
    return InvalidError("a package is not installed", package=package, hint=f"install it: {wanted}")


def counted(number: int, one: str, many: str | None = None) -> str:
    """Return a number with its noun: `1 file`, `2,000 files`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def time_text(at: int) -> str:
    """Return microseconds since 1970 as a time of day, to the second."""
    return datetime.fromtimestamp(at // MICROS_PER_SECOND, UTC).isoformat().replace("+00:00", "Z")


def confirm_clearing(session: Session, *, yes: bool, question: str, table: str) -> None:
    """Ask whether rows of a table are to be removed, unless the answer is known.

    Raises:
        InvalidError: no terminal is there to ask. click.Abort: the answer is no.
    """
    if yes:
        return
    if session.as_json or not sys.stdin.isatty():
        raise InvalidError("clearing a table cannot be undone", table=table, hint="add --yes")
    click.confirm(question, abort=True, err=True)


def aligned(
    headings: Sequence[str], lines: Iterable[Sequence[str]], *, empty: str = "none yet"
) -> str:
    """Return lines of columns, or `empty` where there are none."""
    rows = [headings, *lines]
    if len(rows) == 1:
        return empty
    widths = [max(len(row[n]) for row in rows) for n in range(len(headings))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )


def _refused(error: click.ClickException) -> InvalidError:
    context = error.ctx if isinstance(error, click.UsageError) else None
    path = context.command_path if context else "lakebed"
    message = " ".join(error.format_message().rstrip(".").split())
    return InvalidError(message[:1].lower() + message[1:], hint=f"`{path} --help` shows how")


def _show_error(error: LakebedError, *, as_json: bool) -> int:
    hint = None if error.hint is None else in_shell_words(error.hint)
    facts = {name: str(value) for name, value in error.facts.items()}
    if as_json:
        value = {
            "code": error.code(),
            "message": error.message,
            "facts": facts,
            "hint": hint,
            "exit_code": error.exit_code,
        }
        click.echo(json.dumps({"error": value}), err=True)
        return error.exit_code
    shown = " ".join(f"{name}={value}" for name, value in facts.items())
    click.echo(f"error: {error.message}" + (f" ({shown})" if shown else ""), err=True)
    if hint:
        click.echo(f"  hint: {hint}", err=True)
    click.echo(f"  code: {error.code()}, see `lakebed explain {error.code()}`", err=True)
    return error.exit_code


def _show_bug(error: Exception) -> int:
    click.echo(f"error: a bug in Lakebed: {type(error).__name__}: {error}", err=True)
    click.echo("  hint: `--verbose` shows where; please report it", err=True)
    return EXIT_BUG


def _everywhere() -> list[click.Parameter]:
    """Options that are understood before and after the name of a command."""
    return [
        click.Option(
            ["--lake"],
            metavar="PATH",
            help=f"Directory of the lake.  [default: ${LAKE_VARIABLE}, else ./lake]",
            expose_value=False,
            callback=_set("lake_path"),
        ),
        click.Option(
            ["--at"],
            metavar="INSTANCE",
            help="An instance on AWS in place of a directory; as `--lake aws:INSTANCE`.",
            expose_value=False,
            callback=_be_at,
        ),
        click.Option(
            ["--json"],
            is_flag=True,
            default=None,
            help="Write results and errors as JSON.",
            expose_value=False,
            callback=_set("as_json"),
        ),
        click.Option(
            ["--verbose"],
            is_flag=True,
            default=None,
            help="Write to stderr what happens.",
            expose_value=False,
            callback=_be_verbose,
        ),
    ]


def _set(name: str) -> Callable[[click.Context, click.Parameter, object], None]:
    def callback(ctx: click.Context, _: click.Parameter, value: object) -> None:
        if value is not None:
            setattr(ctx.ensure_object(Session), name, value)

    return callback


def _be_at(ctx: click.Context, _: click.Parameter, value: str | None) -> None:
    if value is not None:
        ctx.ensure_object(Session).lake_path = f"aws:{value.removeprefix('aws:')}"


def _be_verbose(ctx: click.Context, _: click.Parameter, value: object) -> None:
    if value:
        ctx.ensure_object(Session).verbose = True
        logging.basicConfig(stream=sys.stderr, format="%(asctime)s %(message)s")
        logging.getLogger("lakebed").setLevel(logging.INFO)


def _lines(text: str) -> tuple[str, ...]:
    return tuple(line.strip() for line in text.strip().splitlines())


def _write_examples(formatter: click.HelpFormatter, examples: Sequence[str]) -> None:
    if examples:
        with formatter.section("Examples"):
            for line in examples:
                formatter.write(f"  {line}\n")
        formatter.write("\n")
