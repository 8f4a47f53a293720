"""What a person sees who types too little."""

from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from lakebed.cli.main import program
from tests.unit.cli.programs import Shell


@pytest.mark.parametrize("words", [(), ("table",), ("state",), ("dead-letters",)])
def test_a_noun_alone_shows_its_help(tmp_path: Path, words: tuple[str, ...]) -> None:
    shell = Shell(tmp_path)
    alone = shell.run(*words)
    assert (alone.exit_code, alone.stderr) == (0, "")
    assert alone.stdout == shell.ok(*words, "--help")
    assert len(alone.stdout.splitlines()) > 10


def test_a_verb_without_its_argument_is_still_refused(tmp_path: Path) -> None:
    code, error = Shell(tmp_path).refused("query")
    assert (code, error["message"]) == (2, "missing argument 'TABLE'")


def commands(words: tuple[str, ...], command: click.Command) -> Iterator[tuple[str, ...]]:
    yield words
    if isinstance(command, click.Group):
        for name, below in sorted(command.commands.items()):
            yield from commands((*words, name), below)


@pytest.mark.parametrize("words", list(commands((), program)), ids=" ".join)
def test_every_command_begins_with_examples(tmp_path: Path, words: tuple[str, ...]) -> None:
    shown = Shell(tmp_path).ok(*words, "--help").splitlines()
    assert shown[0].startswith("Examples"), "give `examples=` to its decorator"
    assert "lakebed " in shown[1]
