"""`lakebed feed tap`, as people use it: it shows what would become of records, and leaves no
trace."""

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from lakebed.backends.local.leases import SqliteLeases
from tests.unit.cli.programs import Shell

TEXT = """
[feed.orders]
source = {{ files = "{folder}/*.json" }}
decoder = {{ format = "json" }}
[connection.all]
feed = "orders"
table = "typed"
where = "id < 3"
"""


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    shell = Shell(tmp_path)
    shell.ok("table", "create", "typed", "--row-key", "id:int64", "--value", "at:string?")
    (tmp_path / "feeds.toml").write_text(TEXT.format(folder=tmp_path))
    (tmp_path / "a.json").write_text('{"id": 1, "at": "x"}\nbad\n{"id": 3}\n{"id": 2}\n')
    shell.ok("feed", "apply", str(tmp_path / "feeds.toml"))
    return shell


def tapped(shell: Shell, *words: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in shell.ok("feed", "tap", *words).splitlines()]


def traces(shell: Shell) -> tuple[object, ...]:
    """All that a lake keeps: tables, their logs, objects, owners and workers."""
    tables = shell.json("status")
    with closing(SqliteLeases(shell.lake)) as leases:
        owned = leases.workers(), leases.owners()
    log = shell.ok("state", "log", "typed")
    objects = sorted(
        (str(path.relative_to(shell.lake)), path.stat().st_size)
        for path in shell.lake.rglob("*")
        if path.is_file() and ".sqlite" not in path.name
    )
    return tables, log, objects, owned


EXPECTED = [
    (0, "row", {"id": 1, "at": "x"}),
    (21, "unparsable", None),
    (25, "filtered", {"id": 3, "at": None}),
    (35, "row", {"id": 2, "at": None}),
]


def test_records_are_shown_as_rows_or_with_their_verdict_and_nothing_is_left_behind(
    shell: Shell,
) -> None:
    before = traces(shell)
    found = tapped(shell, "orders", "--wait", "0")
    assert [(one["position"], one["verdict"], one["row"]) for one in found] == EXPECTED
    assert len(tapped(shell, "orders", "--limit", "2")) == 2
    assert traces(shell) == before
    assert shell.ok("table", "list").split() == ["typed"], "no quarantine was made"


def test_it_begins_behind_what_was_committed_or_at_the_start(shell: Shell) -> None:
    shell.ok("feed", "start", "orders")
    shell.ok("feed", "run", "--once")
    before = traces(shell)
    assert tapped(shell, "orders", "--wait", "0") == []
    with (shell.folder / "a.json").open("a") as file:
        file.write('{"id": 0}\n')
    (one,) = tapped(shell, "orders", "--wait", "0")
    assert (one["position"], one["row"]["id"]) == (45, 0)
    assert len(tapped(shell, "orders", "--from", "start", "--wait", "0")) == 5
    assert traces(shell) == before
    shell.ok("feed", "run", "--once")
    assert len(shell.ok("query", "typed", "--json").splitlines()) == 3, "the feed went on by itself"
    assert traces(shell) != before, "a commit leaves some"


def test_a_file_is_tapped_as_it_stands_and_a_feed_without_connection_as_it_lands(
    shell: Shell,
) -> None:
    before = traces(shell)
    assert len(tapped(shell, str(shell.folder / "feeds.toml"), "--wait", "0")) == 4
    path = shell.folder / "raw.toml"
    path.write_text(f'[feed.raw]\nfiles = "{shell.folder}/*.json"\n')
    (first, *_) = tapped(shell, str(path), "--wait", "0")
    assert (first["verdict"], first["row"]["key"]) == ("row", None)
    assert traces(shell) == before


def test_a_source_without_order_is_not_touched(shell: Shell) -> None:
    path = shell.folder / "queue.toml"
    path.write_text('[feed.queue]\nsource = { sqs = "https://sqs.eu-west-1.amazonaws.com/1/q" }\n')
    code, error = shell.refused("feed", "tap", str(path))
    assert (code, error["message"]) == (2, "a source without order cannot be looked at")


@pytest.mark.parametrize(
    ("words", "hint"),
    [(("order",), "did you mean 'orders'?"), (("orders", "--connection", "al"), "'all'")],
)
def test_what_there_is_not_is_answered_with_the_nearest(
    shell: Shell, words: tuple[str, ...], hint: str
) -> None:
    code, error = shell.refused("feed", "tap", *words)
    assert code == 2
    assert hint in error["hint"]
