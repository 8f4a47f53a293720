"""What the shell completes."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from lakebed.cli.main import program
from tests.unit.cli.programs import Shell


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    shell = Shell(tmp_path)
    keys = ("--row-key", "vehicle:string", "--row-key", "day:date32")
    for name in ("trips", "trains", "boats"):
        shell.ok("table", "create", name, *keys, "--value", "fare:float64?")
    return shell


def completed(shell: Shell, line: str, *, lake: str | None = None) -> list[str]:
    words = line.split(" ")
    environment = {
        "LAKEBED_LAKE": lake or str(shell.lake),
        "_LAKEBED_COMPLETE": "bash_complete",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
    }
    done = CliRunner().invoke(program, [], env=environment, prog_name="lakebed")
    return [item.partition(",")[2] for item in done.stdout.splitlines() if item]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("lakebed comp", ["compact", "completion"]),
        ("lakebed query tr", ["trains", "trips"]),
        ("lakebed ingest b", ["boats"]),
        ("lakebed table describe t", ["trains", "trips"]),
        ("lakebed table rename b", ["boats"]),
        ("lakebed table quarantine b", ["boats"]),
        ("lakebed run tr", ["trains", "trips"]),
        ("lakebed dead-letters show --table b", ["boats"]),
        ("lakebed table create t", []),
        ("lakebed query trips --columns f", ["fare"]),
        ("lakebed query trips --columns fare,v", ["fare,vehicle"]),
        ("lakebed query trips --range d", ["day="]),
        ("lakebed query trips --range f", []),
        ("lakebed query tripz --columns f", []),
        ("lakebed ingest trips --zone d", ["day="]),
        ("lakebed table alter trips --rename v", ["vehicle="]),
        ("lakebed table alter trips --drop ", ["fare"]),
        ("lakebed table alter trips --widen f", ["fare:"]),
        ("lakebed table create trips --row-key d", []),
    ],
)
def test_words_tables_and_columns_are_completed(shell: Shell, line: str, words: list[str]) -> None:
    assert completed(shell, line) == words


def test_where_there_is_no_lake_nothing_is_completed_and_nothing_made(shell: Shell) -> None:
    assert completed(shell, "lakebed query t", lake=str(shell.folder / "none")) == []
    assert not (shell.folder / "none").exists()


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_the_source_for_a_shell_is_written(shell: Shell, name: str) -> None:
    source = shell.ok("completion", name)
    assert f"_LAKEBED_COMPLETE={name}_complete" in source
    assert "lakebed" in source
