"""`lakebed feed flush`, with a worker beside it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import lakebed
from lakebed.backends.local import SqliteLeases
from tests.unit.cli.programs import Shell

TEXT = """
[feed.orders]
source = {{ files = "{folder}/*.log" }}
rotate_seconds = 3600
rotate_idle_seconds = 3600
"""


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    shell = Shell(tmp_path)
    shell.ok("table", "create", "any", "--row-key", "id:int64")
    path = shell.folder / "feeds.toml"
    path.write_text(TEXT.format(folder=shell.folder))
    shell.ok("feed", "apply", str(path))
    shell.ok("feed", "start", "orders")
    (shell.folder / "a.log").write_text("one\ntwo\n")
    return shell


@contextmanager
def working(shell: Shell) -> Iterator[None]:
    """Have a worker that has read all."""
    stop = threading.Event()

    def work() -> None:
        with lakebed.connect(shell.lake) as lake:
            lakebed.Feeds(lake).work(stop.is_set)

    thread = threading.Thread(target=work)
    thread.start()
    leases = SqliteLeases(shell.lake)
    try:
        for _ in range(200):
            if any(b'"waiting":0' not in beat.report for beat in leases.workers() if beat.report):
                break
            stop.wait(0.1)
        yield
    finally:
        stop.set()
        thread.join()


def test_all_that_was_read_is_committed_and_the_command_knows(shell: Shell) -> None:
    with working(shell):
        (before,) = shell.json("feed", "status", "orders")["feeds"][0]["pipes"]
        assert (before["taken"]["tally"][0], before["work"]["waiting"]) == (0, 8)
        said = shell.ok("feed", "flush", "orders")
        assert said == "1 worker has committed what was read of orders\n"
        status = shell.json("feed", "status", "orders")
        assert status["feeds"][0]["pipes"][0]["taken"]["tally"][0] == 2


def test_what_it_cannot_know_it_says(shell: Shell) -> None:
    result = shell.run("feed", "flush", "orders", "--wait", "0.5")
    assert result.exit_code == 4
    assert "no worker says that it runs the feed: `lakebed feed run`" in result.stdout


def test_a_feed_that_is_stopped_is_refused_with_what_to_do(shell: Shell) -> None:
    shell.ok("feed", "stop", "orders")
    code, error = shell.refused("feed", "flush", "orders")
    assert (code, error["code"]) == (2, "invalid")
    assert "lakebed feed start" in error["hint"]
    assert shell.refused("feed", "flush", "order")[1]["hint"] == "did you mean 'orders'?"
