"""`lakebed feed where` and `verify`, as people use them."""

from pathlib import Path

import pytest

from tests.unit.cli.programs import Shell


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    shell = Shell(tmp_path)
    shell.ok("table", "create", "other", "--row-key", "id:string")
    path = tmp_path / "feeds.toml"
    path.write_text(f'[feed.access]\nfiles = "{tmp_path}/*.log"\n')
    shell.ok("feed", "apply", str(path))
    shell.ok("feed", "start", "access")
    (tmp_path / "a.log").write_bytes(b"one\ntwo\n")
    shell.ok("feed", "run", "--once")
    return shell


def more(shell: Shell, text: bytes) -> None:
    with (shell.folder / "a.log").open("ab") as file:
        file.write(text)
    shell.ok("feed", "run", "--once")


def position_of(shell: Shell) -> tuple[str, str]:
    (kept,) = shell.json("feed", "positions", "list", "access_landing")
    return kept["feed"], kept["source_split"]


def move(shell: Shell, expect: str, to: str) -> None:
    name = "/".join(position_of(shell))
    shell.ok(
        "feed", "positions", "reset", "access_landing", name, "--expect", expect, "--to", to,
        "--why", "planted",
    )  # fmt: skip


def problems(shell: Shell) -> list[tuple[str, int, int]]:
    result = shell.run("feed", "verify", "access")
    lines = [line.split() for line in result.stdout.splitlines()[1:]]
    assert result.exit_code == (2 if lines else 0)
    return [(line[0], int(line[2]), int(line[3])) for line in lines]


def test_what_landed_whole_is_verified_and_found_by_its_position(shell: Shell) -> None:
    more(shell, b"three\n")
    said = shell.ok("feed", "verify", "access")
    assert said == "access_landing: 2 commits from entry 1 on, all rows are there once\n"
    _, split = position_of(shell)
    (first,) = shell.json("feed", "where", "access", split, "5")[0]["entries"]
    (second,) = shell.json("feed", "where", "access", split, "8")[0]["entries"]
    assert (first["begin"], first["end"], first["stored"]) == (0, 8, 2)
    assert (second["begin"], second["end"]) == (8, 14)
    assert second["number"] > first["number"]
    assert shell.ok("feed", "where", "access", split, "14") == "no entry took it\n"
    code, error = shell.refused("feed", "verify", "acces")
    assert (code, error["hint"]) == (2, "did you mean 'access'?")


def test_a_planted_gap_is_found(shell: Shell) -> None:
    with (shell.folder / "a.log").open("ab") as file:
        file.write(b"gone\n")
    move(shell, "8", "13")
    more(shell, b"four\n")
    assert problems(shell) == [("not-taken", 8, 13)]


def test_a_planted_duplicate_is_found(shell: Shell) -> None:
    _, split = position_of(shell)
    rows = shell.write("twice.parquet", {"source_split": [split], "position": [4]})
    shell.ok("ingest", "access_landing", rows)
    assert problems(shell) == [("rows-unexpected", 0, 8), ("row-twice", 4, 5)]


def test_what_was_taken_again_by_an_operator_is_there_twice(shell: Shell) -> None:
    move(shell, "8", "4")
    shell.ok("feed", "run", "--once")
    assert problems(shell) == [("row-twice", 4, 5)]


def test_a_table_that_was_cleared_is_compared_from_there_on(shell: Shell) -> None:
    shell.ok("table", "clear", "access_landing", "--yes")
    more(shell, b"three\n")
    assert problems(shell) == []
