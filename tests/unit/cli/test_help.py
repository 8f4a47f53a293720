"""What a person sees who types too little."""

from pathlib import Path

import pytest

from tests.unit.cli.programs import Shell


@pytest.mark.parametrize("words", [(), ("table",), ("state",), ("local",), ("dead-letters",)])
def test_a_noun_alone_shows_its_help(tmp_path: Path, words: tuple[str, ...]) -> None:
    shell = Shell(tmp_path)
    alone = shell.run(*words)
    assert (alone.exit_code, alone.stderr) == (0, "")
    assert alone.stdout == shell.ok(*words, "--help")
    assert len(alone.stdout.splitlines()) > 10


def test_a_verb_without_its_argument_is_still_refused(tmp_path: Path) -> None:
    code, error = Shell(tmp_path).refused("query")
    assert (code, error["message"]) == (2, "missing argument 'TABLE'")
