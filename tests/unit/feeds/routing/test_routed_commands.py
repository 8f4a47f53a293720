"""Commands of feeds show a connection with a route by its tables."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.cli.programs import Shell

TEXT = """
[feed.events]
source = {{ files = "{folder}/*.json" }}
decoder = {{ format = "json" }}
[connection.by-type]
feed = "events"
route = {{ field = "type", tables = {{ {tables} }} }}
"""
WEB_APP = 'WEB = "web", APP = "app"'


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    shell = Shell(tmp_path)
    for name in ("web", "app"):
        shell.ok("table", "create", name, "--row-key", "id:int64")
    shell.ok("feed", "apply", file(shell))
    (shell.folder / "a.json").write_text('{"type": "WEB", "id": 1}\n{"type": "POS", "id": 2}\n')
    shell.ok("feed", "start", "events")
    shell.ok("feed", "run", "--once")
    return shell


def file(shell: Shell, tables: str = WEB_APP) -> str:
    path = shell.folder / "feeds.toml"
    path.write_text(TEXT.format(folder=shell.folder, tables=tables))
    return str(path)


def test_status_has_a_line_for_each_table(shell: Shell) -> None:
    lines = [line.split() for line in shell.ok("feed", "status").splitlines()[1:-1]]
    into, read = 1, 10
    assert [(line[into], line[into + 1], *line[read : read + 3]) for line in lines] == [
        ("by-type/app:", "app", "2", "0", "1"),
        ("by-type/web:", "web", "2", "1", "1"),
    ]


def test_describe_says_which_rows_a_table_gets(shell: Shell) -> None:
    said = shell.ok("feed", "describe", "events")
    assert "by-type/web to web, policy FaultTolerant, route type = 'WEB'" in said


def test_a_dry_run_shows_what_a_route_leads_into_and_refuses_what_moves(shell: Shell) -> None:
    more = file(shell, f'{WEB_APP}, POS = "web"')
    said = shell.ok("feed", "apply", more, "--dry-run")
    assert 'connection.by-type.route.tables.POS: not said -> "web"' in said
    code, error = shell.refused("feed", "apply", file(shell, 'WEB = "app", APP = "app"'))
    assert (code, error["facts"]["at"]) == (2, "connection.by-type.route.tables.WEB")


def test_positions_and_ledger_of_each_table_are_its_own(shell: Shell) -> None:
    by_table = {name: shell.json("feed", "positions", "list", name) for name in ("web", "app")}
    (web,), (app,) = by_table["web"], by_table["app"]
    assert web["next"] == app["next"]
    assert web["feed"] != app["feed"]
    (row,) = shell.json("feed", "ledger", "app")
    assert row["tally"][:4] == [2, 0, 1, 1]


def test_what_a_table_lacks_is_shown_by_its_name_and_replayed(shell: Shell) -> None:
    show = ("feed", "quarantine", "show", "events", "--json")
    found = [json.loads(line) for line in shell.ok(*show).splitlines()]
    assert {one["connection"] for one in found} == {"by-type/app", "by-type/web"}
    assert {one["verdict"] for one in found} == {"no-route"}
    one = json.loads(shell.ok(*show, "--connection", "by-type/web"))
    assert one["connection"] == "by-type/web"
    _, error = shell.refused("feed", "quarantine", "show", "events", "--connection", "by-type")
    assert "by-type/" in str(error["hint"])
    shell.ok("feed", "apply", file(shell, f'{WEB_APP}, POS = "web"'))
    shell.ok("feed", "quarantine", "replay", "events", "--connection", "by-type")
    assert shell.ok(*show) == ""
    assert shell.ok("query", "web", "--format", "jsonl").count("\n") == 2


def test_a_tap_looks_by_one_of_the_tables(shell: Shell) -> None:
    _, error = shell.refused("feed", "tap", "events")
    assert "by-type/app, by-type/web" in str(error["hint"])
    said = shell.ok("feed", "tap", "events", "--connection", "by-type/app", "--from", "start")
    assert ['"ignored"' in line for line in said.splitlines()] == [True, False]


def test_a_connection_with_a_route_is_dropped_as_one(shell: Shell) -> None:
    assert shell.ok("feed", "disconnect", "by-type") == "dropped connection.by-type\n"
    assert shell.json("feed", "describe", "events")["connections"] == []
