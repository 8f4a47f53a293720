"""`lakebed feed status`, as people use it."""

import threading
from pathlib import Path

import msgspec
import pytest

from lakebed.backends.local.leases import SqliteLeases
from lakebed.feeds.worker import FeedReport
from lakebed.model.feeds.tallies import Tally
from lakebed.ports.leases import WorkerId
from tests.unit.cli.programs import Shell

TEXT = """
[feed.orders]
source = {{ files = "{folder}/*.json" }}
decoder = {{ format = "json" }}
landing = true
[connection.all]
feed = "orders"
table = "typed"
"""


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    shell = Shell(tmp_path)
    shell.ok("table", "create", "typed", "--row-key", "id:int64")
    path = shell.folder / "feeds.toml"
    path.write_text(TEXT.format(folder=shell.folder))
    shell.ok("feed", "apply", str(path))
    (shell.folder / "a.json").write_text('{"id": 1}\n{"id": 2}\nbad\n')
    return shell


def test_a_feed_is_shown_by_its_landing_and_each_connection(shell: Shell) -> None:
    shell.ok("feed", "start", "orders")
    shell.ok("feed", "run", "--once")
    said = shell.ok("feed", "status").splitlines()
    assert [line.split() for line in said] == [
        ["FEED", "INTO", "STATE", "VERSION", "WORKERS", "SPLITS", "BEHIND", "LAG", "WAITING",
         "READ", "STORED", "BAD", "WATERMARK", "WHY"],
        ["orders", "orders_landing", "running", "2", "0", "0", "0", "0", "0", "3", "3", "0", "-"],
        ["orders", "all:", "typed", "running", "2", "0", "0", "0", "0", "0", "3", "2", "1", "-"],
        ["0", "workers", "live"],
    ]  # fmt: skip
    found = shell.json("feed", "status", "orders")
    landed, connected = found["feeds"][0]["pipes"]
    assert (landed["kind"], landed["taken"]["splits"]) == ("feed", 1)
    assert connected["taken"]["tally"][:4] == [3, 2, 0, 1]
    assert found["workers"] == []


def test_a_worker_that_is_silent_is_named_and_what_it_said_is_not_counted(
    shell: Shell,
) -> None:
    report = FeedReport(
        kind="connection", name="all", version=1, splits=3, behind=4, waiting=5, commits=1,
        tally=Tally(),
    )  # fmt: skip
    SqliteLeases(shell.lake).beat(WorkerId("worker-1"), msgspec.json.encode([report]))
    assert shell.ok("feed", "status", "--listen", "0.3").endswith(
        "0 workers live, silent: worker-1\n"
    )
    found = shell.json("feed", "status", "--listen", "0")
    assert found["feeds"][0]["pipes"][1]["work"]["splits"] == 0
    assert found["workers"][0]["reports"][0]["splits"] == 3


def test_what_waits_in_spools_is_said_where_there_is_some(shell: Shell) -> None:
    report = FeedReport(
        kind="connection", name="all", version=1, splits=3, behind=4, waiting=5, commits=1,
        tally=Tally(), spooled=123_456,
    )  # fmt: skip
    ended, begun = threading.Event(), threading.Event()

    def beat() -> None:
        leases = SqliteLeases(shell.lake)
        while not ended.wait(0.05):
            leases.beat(WorkerId("worker-1"), msgspec.json.encode([report]))
            begun.set()
        leases.close()

    beating = threading.Thread(target=beat)
    beating.start()
    assert begun.wait(30)
    try:
        said = shell.ok("feed", "status", "--listen", "30")
    finally:
        ended.set()
        beating.join()
    assert "orders into typed: 123,456 bytes wait in spools, on disks of workers\n" in said
    assert "spools" not in shell.ok("feed", "status", "--listen", "0")


def test_a_table_that_is_gone_is_said_and_hides_nothing(shell: Shell) -> None:
    shell.ok("table", "drop", "typed", "--yes")
    said = shell.ok("feed", "status").splitlines()
    assert said[1].endswith("table-missing"), "the landing table is created with the first run"
    assert said[2].endswith("table-missing")


def test_a_feed_that_there_is_not_is_answered_with_the_nearest(shell: Shell) -> None:
    code, error = shell.refused("feed", "status", "order")
    assert (code, error["hint"]) == (2, "did you mean 'orders'?")


def test_a_lake_without_feeds_says_how_to_begin(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    shell.ok("table", "create", "typed", "--row-key", "id:int64")
    assert "lakebed feed apply" in shell.ok("feed", "status")
