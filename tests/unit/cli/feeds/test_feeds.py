"""`lakebed feed`, as people use it."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from lakebed.backends.local.leases import SqliteLeases
from tests.unit.cli.programs import Shell


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    shell = Shell(tmp_path)
    shell.ok("table", "create", "other", "--row-key", "id:string")
    (tmp_path / "a.log").write_bytes(b"one\ntwo\nthr")
    return shell


def feeds(shell: Shell, text: str = "") -> str:
    path = shell.folder / "feeds.toml"
    path.write_text(text or f'[feed.access]\nfiles = "{shell.folder}/*.log"\n')
    return str(path)


def test_lines_are_landed_and_queried(shell: Shell) -> None:
    said = shell.ok("feed", "run", feeds(shell), "--once")
    assert said == "access: 2 records into access_landing, 1 commit\n"
    rows = shell.ok("query", "access_landing", "--columns", "position,value", "--json")
    assert rows.splitlines() == ['{"position":0,"value":"b25l"}', '{"position":4,"value":"dHdv"}']
    (done,) = shell.json("feed", "run", feeds(shell), "--once")
    assert (done["commits"], done["tally"][0], done["code"]) == (0, 0, "")
    assert "1 source split, 2 records read, 2 stored" in shell.ok("status", "access_landing")
    log = shell.ok("state", "log", "access_landing")
    assert ": 2 read, 2 stored" in log
    assert "at 8, revision 1" in log


def test_a_feed_that_fails_is_told_and_others_go_on(shell: Shell) -> None:
    text = Path(feeds(shell)).read_text("utf-8")
    both = feeds(shell, text + f'[feed.second]\nfiles = "{shell.folder}/*.txt"\n')
    shell.ok("feed", "run", both, "--once")
    (shell.folder / "a.log").write_bytes(b"one\n")
    (shell.folder / "b.txt").write_bytes(b"x\n")
    result = shell.run("feed", "run", both, "--once")
    assert result.exit_code == 2
    assert (
        "failed: feed access: position-gone: a file has fewer bytes than were taken"
        in result.stderr
    )
    assert "second: 1 record into second_landing" in result.stdout


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('[feed.access]\nfile = "x"', "did you mean 'files'?"),
        ('[feed.other-1]\nfiles = "x"\nrotate = 3', "did you mean 'rotate_bytes'?"),
        ('[feed.No]\nfiles = "x"', "use 1 to 63"),
        ("no toml", "no TOML"),
    ],
)
def test_a_file_of_feeds_that_cannot_be_is_refused_and_makes_no_table(
    shell: Shell, text: str, says: str
) -> None:
    code, error = shell.refused("feed", "run", feeds(shell, text), "--once")
    assert code == 2
    assert says in f"{error['message']} {error['hint']}"
    assert shell.ok("table", "list").split() == ["other"]


def test_a_file_that_is_not_there_is_named(shell: Shell) -> None:
    code, error = shell.refused("feed", "run", "feeds.toml", "--once")
    assert code == 2
    assert "feeds.toml" in str(error)


def position_of(shell: Shell) -> str:
    (kept,) = shell.json("feed", "positions", "list", "access_landing")
    return f"{kept['feed']}/{kept['source_split']}"


def test_positions_are_listed_reset_and_deleted_with_a_reason(shell: Shell) -> None:
    shell.ok("feed", "run", feeds(shell), "--once")
    name = position_of(shell)
    listed = shell.ok("feed", "positions", "list", "access_landing").splitlines()
    assert "  next  revision  owner  event time  errors in a row" in listed[0]
    assert listed[1].split() == [name, "8", "1"]
    move = ("feed", "positions", "reset", "access_landing", name)
    refused = shell.run(*move, "--expect", "4", "--to", "4", "--why", "seen too late")
    assert "not the one that was expected" in refused.stderr
    done = shell.ok(*move, "--expect", "8", "--to", "4", "--why", "spoiled", "--who", "alice")
    assert done == f"{name} goes on at 4 (entry 3)\n"
    assert "revision 2, by alice: spoiled" in shell.ok("state", "log", "access_landing")
    said = shell.ok("feed", "run", feeds(shell), "--once")
    assert said == "access: 1 record into access_landing, 1 commit\n"
    gone = ("feed", "positions", "delete", "access_landing", name)
    shell.ok(*gone, "--expect", "8", "--why", "begin anew")
    assert shell.ok("feed", "positions", "list", "access_landing") == "none yet\n"
    said = shell.ok("feed", "run", feeds(shell), "--once")
    assert said == "access: 2 records into access_landing, 1 commit\n"


def test_the_ledger_and_gaps_of_a_table_are_shown(shell: Shell) -> None:
    shell.ok("feed", "run", feeds(shell), "--once")
    feed, split = position_of(shell).split("/", 1)
    shown = shell.ok("feed", "ledger", "access_landing", "--feed", feed)
    assert f"{feed}/{split}" in shown
    assert shown.rstrip().endswith("2 read, 2 stored")
    (row,) = shell.json("feed", "ledger", "access_landing")
    assert row["tally"][:2] == [2, 2]
    assert shell.ok("feed", "gaps", "access_landing") == "none\n"
    refused = shell.run("feed", "ledger", "access_landing", "--feed", "nothing")
    assert "no such feed" in refused.stderr


def test_a_table_is_cleared_for_feeds_to_go_on_or_to_begin_again(shell: Shell) -> None:
    shell.ok("feed", "run", feeds(shell), "--once")
    shell.ok("table", "clear", "access_landing", "--yes")
    assert shell.json("feed", "run", feeds(shell), "--once")[0]["commits"] == 0
    shell.ok("table", "clear", "access_landing", "--from-start", "--yes")
    said = shell.ok("feed", "run", feeds(shell), "--once")
    assert said == "access: 2 records into access_landing, 1 commit\n"


# feeds that the lake defines

DEFINED = """
[feed.orders]
source = {{ files = "{folder}/*.json" }}
decoder = {{ format = "json" }}
rotate_idle_seconds = 0.1
[connection.all]
feed = "orders"
table = "typed"
policy = "Quick"
[policy.Quick]
errors_in_row_max = 3
rotate_idle_seconds = 0.1
"""


GROWS = 'extends = "Elastic"\nworkers_min = 2\n'


class Run:
    """`lakebed feed run` as a process of its own."""

    def __init__(self, shell: Shell, *options: str) -> None:
        command = [sys.executable, "-c", "from lakebed.cli.main import main; main()"]
        where = ["--lake", str(shell.lake), "feed", "run", *options]
        self.process = subprocess.Popen([*command, *where], stderr=subprocess.PIPE)
        self.leases = SqliteLeases(shell.lake)

    def child(self) -> int:
        """Return the further process."""
        asked = ["pgrep", "-P", str(self.process.pid)]
        found = subprocess.run(asked, capture_output=True, check=True, text=True)
        return int(found.stdout)

    def wait_until(self, is_so: Callable[[], bool]) -> None:
        end = time.monotonic() + 60
        while not is_so():
            assert time.monotonic() < end
            assert self.process.poll() is None, self.process.communicate()
            time.sleep(0.1)

    def stop(self) -> bytes:
        """SIGTERM. It ends well, and leaves no owner and no worker behind."""
        self.process.terminate()
        _, said = self.process.communicate(timeout=60)
        assert self.process.returncode == 0, said
        assert self.leases.workers() == []
        assert {owner.worker for owner in self.leases.owners()} <= {""}
        return said


@pytest.fixture
def defined(shell: Shell) -> Shell:
    shell.ok("table", "create", "typed", "--row-key", "id:int64")
    path = shell.folder / "defined.toml"
    path.write_text(DEFINED.format(folder=shell.folder))
    shell.ok("feed", "apply", str(path))
    (shell.folder / "a.json").write_text('{"id": 1}\n{"id": 2}\nbad\n')
    return shell


def rows_of(shell: Shell, table: str) -> list[str]:
    result = shell.run("query", table, "--json")
    return result.stdout.splitlines() if result.exit_code == 0 else []


def test_feeds_that_were_started_run_until_they_are_to_stop(defined: Shell) -> None:
    defined.ok("feed", "start", "orders")
    run = Run(defined)
    run.wait_until(lambda: len(rows_of(defined, "typed")) == 2)
    (bad,) = rows_of(defined, "orders_quarantine")
    assert '"verdict":"unparsable"' in bad
    (defined.folder / "b.json").write_text('{"id": 3}\n')
    assert b"Traceback" not in run.stop()
    defined.ok("feed", "run", "--once")
    assert rows_of(defined, "typed") == ['{"id":1}', '{"id":2}', '{"id":3}']


def test_a_feed_that_is_not_to_be_found_is_named_and_nothing_runs(defined: Shell) -> None:
    code, error = defined.refused("feed", "run", "--only", "order")
    assert (code, error["message"]) == (2, "no feed has this name")
    assert "did you mean 'orders'?" in error["hint"]
    code, error = defined.refused("feed", "run", feeds(defined), "--only", "orders")
    assert code == 2
    assert "feed apply" in error["hint"]


def test_processes_are_started_and_stopped_together(defined: Shell) -> None:
    defined.ok("feed", "start", "orders")
    for number in range(6):
        (defined.folder / f"c{number}.json").write_text(f'{{"id": {10 + number}}}\n')
    run = Run(defined, "--processes", "2", "--only", "orders")
    run.wait_until(lambda: len(run.leases.workers()) == 2)
    run.wait_until(lambda: len(rows_of(defined, "typed")) == 8)
    run.stop()


def test_a_further_process_that_is_killed_is_started_again(defined: Shell) -> None:
    run = Run(defined, "--processes", "2")
    run.wait_until(lambda: len(run.leases.workers()) == 2)
    known = {beat.worker for beat in run.leases.workers()}
    os.kill(run.child(), signal.SIGKILL)
    run.wait_until(lambda: len(run.leases.workers()) == 3)
    assert known < {beat.worker for beat in run.leases.workers()}
    run.process.terminate()
    run.process.communicate(timeout=60)
    assert run.process.returncode == 0
    assert {beat.worker for beat in run.leases.workers()} < known, "who was killed does not leave"


def test_as_many_processes_are_started_as_elastic_feeds_want(defined: Shell) -> None:
    path = defined.folder / "elastic.toml"
    path.write_text(DEFINED.format(folder=defined.folder) + GROWS)
    defined.ok("feed", "apply", str(path))
    defined.ok("feed", "start", "orders")
    run = Run(defined, "--processes", "auto")
    run.wait_until(lambda: len(run.leases.workers()) == 2)
    assert "2 workers live of 2 that are wanted" in defined.ok("feed", "status")
    run.stop()


@pytest.mark.parametrize("wrong", ["0", "65", "many", "Auto"])
def test_a_number_of_processes_that_cannot_be_is_refused(defined: Shell, wrong: str) -> None:
    assert defined.run("feed", "run", "--processes", wrong).exit_code == 2


def test_further_processes_end_with_the_first_one(defined: Shell) -> None:
    run = Run(defined, "--processes", "2")
    run.wait_until(lambda: len(run.leases.workers()) == 2)
    run.process.kill()
    run.process.communicate(timeout=60)
    end = time.monotonic() + 60
    while len(run.leases.workers()) == 2:  # only who ends well leaves
        assert time.monotonic() < end
        time.sleep(0.1)


def test_a_feed_that_cannot_work_harms_no_other_and_is_seen_to_have_failed(defined: Shell) -> None:
    """Its own definition has not the newest version: that of its feed has."""
    path = defined.folder / "bad.toml"
    path.write_text('[connection.gone]\nfeed = "orders"\ntable = "gone"\n')
    defined.ok("table", "create", "gone", "--row-key", "id:int64")
    defined.ok("feed", "apply", str(path))
    path.write_text(
        f'[feed.orders]\nlanding = true\nsource = {{ files = "{defined.folder}/*.json" }}\n'
        'decoder = { format = "json" }\n'
    )
    defined.ok("feed", "apply", str(path))
    defined.ok("table", "drop", "gone", "--yes")
    defined.ok("feed", "start", "orders")
    run = Run(defined)
    run.wait_until(lambda: len(rows_of(defined, "typed")) == 2)
    run.wait_until(lambda: "table-missing" in defined.ok("feed", "list"))
    run.stop()


def test_windows_are_shown_where_there_are_some(shell: Shell) -> None:
    shell.ok("feed", "run", feeds(shell), "--once")
    assert shell.ok("feed", "windows", "access_landing", "--sealed") == "none yet\n"
    assert shell.json("feed", "windows", "access_landing") == []
