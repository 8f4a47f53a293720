"""The command `python -m localcloud`: it is the developer's tool, and no part of `lakebed`."""

import json
import sys
import tomllib
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from click.testing import CliRunner

from lakebed.cli.main import program as lakebed_program
from localcloud.commands import program

ROOT = Path(__file__).parents[3]
COMMANDS = {"up", "status", "env", "advance", "fire", "invoke", "down"}


def test_a_package_that_is_not_installed_is_no_bug(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "boto3", None)
    for module in [name for name in sys.modules if name.startswith("localcloud.")]:
        if module != "localcloud.commands":
            monkeypatch.delitem(sys.modules, module)
    assembly = tmp_path / "assembly"
    assembly.mkdir()
    options = ["--assembly", str(assembly), "--folder", str(tmp_path / "cloud"), "--json"]
    result = CliRunner().invoke(program, ["up", "dev", *options])
    error = json.loads(result.stderr)["error"]
    assert (result.exit_code, error["code"]) == (2, "invalid")
    assert error["facts"] == {"package": "boto3"}
    assert "pip install 'lakebed[aws]'" in error["hint"]
    assert not result.stdout


@pytest.mark.parametrize("words", [(), *((name,) for name in sorted(COMMANDS))])
def test_help_begins_with_examples_of_this_command(words: tuple[str, ...]) -> None:
    result = CliRunner().invoke(program, [*words, "--help"], prog_name="python -m localcloud")
    assert result.exit_code == 0
    first, example = result.stdout.splitlines()[:2]
    assert first == "Examples:"
    assert " ".join(("python -m localcloud", *words)) in example


def test_the_library_has_no_such_command() -> None:
    assert set(program.commands) == COMMANDS
    assert "local" not in lakebed_program.commands
    result = CliRunner().invoke(lakebed_program, ["local", "up", "dev"])
    assert result.exit_code == 2
    assert "no such command" in result.stderr


def test_a_wheel_holds_the_library_and_spark_jobs_and_no_local_cloud() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    patterns = settings["tool"]["setuptools"]["packages"]["find"]["include"]
    folders = {path.name for path in ROOT.iterdir() if path.is_dir()}
    packed = {name for name in folders if any(fnmatchcase(name, one) for one in patterns)}
    assert "localcloud" in folders
    assert packed - {"lakebed.egg-info"} == {"lakebed", "spark_jobs"}
