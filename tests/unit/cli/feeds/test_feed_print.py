"""`lakebed feed print`: what was landed, with offsets."""

from __future__ import annotations

import base64
import json
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
    return shell


def fill(shell: Shell, text: bytes, name: str = "a.log") -> None:
    (shell.folder / name).write_bytes(text)
    shell.run("feed", "start", "access")
    shell.ok("feed", "run", "--once")


def lines(shell: Shell, *options: str) -> list[dict[str, object]]:
    said = shell.ok("feed", "print", "access", *options, "--json")
    return [json.loads(line) for line in said.splitlines()]


def test_records_are_printed_with_their_positions(shell: Shell) -> None:
    fill(shell, b"one\ntwo\nthree\n")
    said = shell.ok("feed", "print", "access").splitlines()
    assert said[0].split() == ["SOURCE", "SPLIT", "POSITION", "TIME"]
    assert [line.split()[1] for line in said[1:]] == ["0", "4", "8"]
    said = shell.ok("feed", "print", "access", "--values").splitlines()
    assert [line.split()[-1] for line in said[1:]] == ["one", "two", "three"]
    assert [one["position"] for one in lines(shell)] == [0, 4, 8]
    assert "value" not in lines(shell)[0]


def test_a_range_of_one_source_split_is_printed(shell: Shell) -> None:
    fill(shell, b"one\ntwo\nthree\n")
    fill(shell, b"1\n2\n", "b.log")
    kept = shell.json("feed", "positions", "list", "access_landing")
    (split,) = [one["source_split"] for one in kept if one["next"] == 14]
    found = lines(shell, str(split), "--from", "4", "--to", "8", "--values")
    assert [(one["position"], one["value"], one["headers"]) for one in found] == [(4, "two", [])]
    assert len(lines(shell, "--from", "1")) == 3, "of all source splits"
    assert len(lines(shell, "--limit", "4")) == 4
    code, error = shell.refused("feed", "print", "access", f"{split}x")
    assert (code, error["hint"]) == (2, f"did you mean '{split}'?")
    assert shell.refused("feed", "print", "access", "--from", "5", "--to", "5")[0] == 2


def test_no_terminal_obeys_what_a_record_holds(shell: Shell) -> None:
    fill(shell, b"a\x1b[31mb\r\n\xff\xfe\n")
    text, binary = lines(shell, "--values")
    assert text["value"] == "a\x1b[31mb\r"
    assert base64.b64decode(str(binary["value_base64"])) == b"\xff\xfe"
    said = shell.ok("feed", "print", "access", "--values")
    assert "\x1b" not in said
    assert "a\\x1b[31mb" in said
    assert "base64 //4=" in said


def test_what_is_not_there_is_said(shell: Shell) -> None:
    assert shell.refused("feed", "print", "acces")[1]["hint"] == "did you mean 'access'?"
    assert shell.refused("feed", "print", "access")[1]["code"] == "table-missing"
    fill(shell, b"")
    assert shell.ok("feed", "print", "access") == "none\n"
    shell.ok("table", "create", "odd_landing", "--row-key", "id:string")
    assert "no landing table" in str(shell.refused("feed", "print", "odd")[1]["message"])


def test_a_feed_that_only_a_file_defines_is_printed(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    shell.ok("table", "create", "other", "--row-key", "id:string")
    path = tmp_path / "feeds.toml"
    path.write_text(f'[feed.access]\nfiles = "{tmp_path}/*.log"\n')
    (tmp_path / "a.log").write_bytes(b"one\n")
    shell.ok("feed", "run", str(path), "--once")
    assert [one["position"] for one in lines(shell)] == [0]
