"""`lakebed feed quarantine`, as people use it."""

import base64
import json
from pathlib import Path

import pytest

from tests.unit.cli.programs import Shell

TEXT = """
[feed.orders]
source = {{ files = "{folder}/*.json" }}
decoder = {{ format = "json" }}
[connection.all]
feed = "orders"
table = "typed"
[connection.more]
feed = "orders"
table = "typed"
columns = {{ id = "ids" }}
"""


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    shell = Shell(tmp_path)
    shell.ok("table", "create", "typed", "--row-key", "id:int64")
    path = shell.folder / "feeds.toml"
    path.write_text(TEXT.format(folder=shell.folder))
    shell.ok("feed", "apply", str(path))
    shell.ok("feed", "start", "orders")
    return shell


def fill(shell: Shell) -> None:
    bad = b'{"id": 1}\nb\x1b[31mad\n{"id": "\xff"}\n'
    (shell.folder / "a.json").write_bytes(bad)
    shell.ok("feed", "run", "--once")


def lines(shell: Shell, *options: str) -> list[dict[str, object]]:
    said = shell.ok("feed", "quarantine", "show", "orders", *options, "--json")
    return [json.loads(line) for line in said.splitlines()]


def test_bad_records_are_shown_with_their_reason_by_the_names_of_connections(shell: Shell) -> None:
    assert shell.ok("feed", "quarantine", "show", "orders") == "none\n"
    fill(shell)
    found = lines(shell)
    assert {one["connection"] for one in found} == {"all", "more"}
    assert "value" not in found[0]
    found = lines(shell, "--connection", "all")
    assert [(one["position"], one["verdict"]) for one in found] == [
        (10, "unparsable"),
        (19, "not-utf8"),
    ]
    assert len(lines(shell, "--limit", "3")) == 3
    said = shell.ok("feed", "quarantine", "show", "orders", "--connection", "more").splitlines()
    assert said[0].split() == [
        "CONNECTION",
        "SOURCE",
        "SPLIT",
        "POSITION",
        "VERDICT",
        "TIME",
        "WHY",
    ]
    assert said[1].startswith("more  ")
    assert "missing-field" in said[1]


def test_values_are_shown_on_demand_and_no_terminal_obeys_them(shell: Shell) -> None:
    fill(shell)
    text, binary = lines(shell, "--connection", "all", "--values")
    assert text["value"] == "b\x1b[31mad"
    assert base64.b64decode(str(binary["value_base64"])) == b'{"id": "\xff"}'
    said = shell.ok("feed", "quarantine", "show", "orders", "--connection", "all", "--values")
    assert "\x1b" not in said
    assert "b\\x1b[31mad" in said
    assert "base64 " in said


def test_records_of_a_connection_that_is_gone_are_shown_by_its_id(shell: Shell) -> None:
    fill(shell)
    id_ = shell.json("feed", "describe", "orders")["connections"][0]["id"]
    shell.ok("feed", "disconnect", "all")
    assert [one["connection"] for one in lines(shell, "--connection", id_)] == [id_, id_]


@pytest.mark.parametrize(
    ("words", "hint"),
    [(("order",), "did you mean 'orders'?"), (("orders", "--connection", "al"), "'all'")],
)
def test_what_there_is_not_is_answered_with_the_nearest(
    shell: Shell, words: tuple[str, ...], hint: str
) -> None:
    fill(shell)
    code, error = shell.refused("feed", "quarantine", "show", *words)
    assert code == 2
    assert hint in error["hint"]


def test_a_feed_that_only_a_file_defines_has_a_quarantine_too(shell: Shell) -> None:
    shell.ok("feed", "stop", "orders")
    shell.ok("feed", "drop", "orders", "--cascade")
    (shell.folder / "a.json").write_bytes(b"bad\n")
    path = shell.folder / "feeds.toml"
    refused = shell.run("feed", "run", str(path), "--once")
    assert refused.exit_code
    assert "give it another name in its file" in refused.output
    path.write_text(path.read_text().replace("connection.", "connection.other-"))
    shell.ok("feed", "run", str(path), "--once")
    assert {one["verdict"] for one in lines(shell)} == {"unparsable"}


def test_records_are_replayed_by_the_definition_of_now(shell: Shell) -> None:
    assert shell.ok("feed", "quarantine", "replay", "orders") == "none\n"
    (shell.folder / "a.json").write_text('{"id": 1}\n{"ids": 2}\nbad\n')
    shell.ok("feed", "run", "--once")
    path = shell.folder / "feeds.toml"
    path.write_text(path.read_text().replace('"ids"', '"id"'))
    shell.ok("feed", "apply", str(path))
    said = shell.ok("feed", "quarantine", "replay", "orders", "--connection", "more")
    assert said == "more: 2 records replayed, 1 into typed, 1 still in quarantine\n"
    both = shell.json("feed", "quarantine", "replay", "orders")
    assert [one["tally"][0] for one in both] == [2, 1], "records that were read"
    assert {one["position"] for one in lines(shell, "--connection", "more")} == {21}
    _, error = shell.refused("feed", "quarantine", "replay", "orders", "--connection", "mor")
    assert "did you mean 'more'" in error["hint"]


def test_a_feed_of_a_file_is_replayed_by_that_file(shell: Shell, tmp_path: Path) -> None:
    folder = tmp_path / "records"
    folder.mkdir()
    (folder / "b.json").write_text('{"id": 7}\n{"ids": 8}\n')
    path = shell.folder / "own.toml"
    own = TEXT.format(folder=folder).replace("feed.orders", "feed.own").replace('"orders"', '"own"')
    path.write_text(own.replace("connection.all", "connection.a").replace(".more", ".b"))
    shell.ok("feed", "run", str(path), "--once")
    path.write_text(path.read_text().replace('"ids"', '"id"'))
    said = shell.ok("feed", "quarantine", "replay", "own", "--file", str(path))
    assert "b: 1 record replayed, 1 into typed, 0 still in quarantine" in said
    _, error = shell.refused("feed", "quarantine", "replay", "on", "--file", str(path))
    assert "did you mean 'own'" in error["hint"]


def test_a_quarantine_is_dropped_and_its_counts_stay(shell: Shell) -> None:
    _, error = shell.refused("feed", "quarantine", "drop", "orders", "--yes")
    assert error["code"] == "table-missing"
    fill(shell)
    before = shell.json("feed", "status", "orders")
    assert "would remove 5 rows" in shell.ok("feed", "quarantine", "drop", "orders", "--dry-run")
    _, error = shell.refused("feed", "quarantine", "drop", "orders")
    assert "--yes" in error["hint"]
    assert len(lines(shell)) == 5
    shell.ok("feed", "quarantine", "drop", "orders", "--yes")
    assert lines(shell) == []
    assert shell.json("feed", "status", "orders")["feeds"] == before["feeds"]
    assert shell.ok("feed", "run", "--once").count("0 records") == 2
