"""`lakebed upgrade` in a directory: real processes hold locks, of this release and older ones."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lakebed.backends.local.table_registry import SqliteTableRegistry
from lakebed.errors import NewerFormatError, OlderProcessError, ReleaseSkippedError
from lakebed.lake import connect
from lakebed.model.formats import NEWEST, Formats
from lakebed.model.releases import BEFORE, RELEASES, THIS
from tests.unit.cli.programs import Shell

OF_A_RELEASE = """
import sys
from pathlib import Path
from lakebed.model.releases import RELEASES
from lakebed.upgrades import release_reports
(release_reports.THIS,) = [one for one in RELEASES if one.name == sys.argv[2]]
from lakebed.backends.local.process_folder import ProcessFolder
from lakebed.backends.system.clock import SystemClock
from lakebed.bootstrap.releases import report_by_lock
spill = Path(sys.argv[1]) / "spill"
folder = ProcessFolder(spill)
report_by_lock(spill, folder, SystemClock())
print("open", flush=True)
sys.stdin.read()
folder.close()
"""
"""A process that has a lake open, as one of another release would."""

OF_BEFORE_REPORTS = """
import sys
from pathlib import Path
from lakebed.backends.local.process_folder import ProcessFolder
folder = ProcessFolder(Path(sys.argv[1]) / "spill")
print("open", flush=True)
sys.stdin.read()
"""
"""One of a release whose processes said nothing of themselves: they only held locks."""


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """A lake that the release before made."""
    shell = Shell(tmp_path)
    connect(shell.lake).close()
    SqliteTableRegistry(shell.lake).raise_formats(BEFORE.formats)
    shell.ok("table", "create", "t", "--row-key", "id:int64")
    return shell


@contextmanager
def working(program: str, *args: object) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", program, *map(str, args)]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def gate(shell: Shell) -> Formats | None:
    return SqliteTableRegistry(shell.lake).formats()


def test_a_lake_is_upgraded_when_no_older_process_is_left(shell: Shell) -> None:
    (step,) = shell.json("upgrade", "plan")["steps"]
    assert "lakebed upgrade finish" in step
    with working(OF_A_RELEASE, shell.lake, BEFORE.name) as old:
        steps = shell.json("upgrade", "plan")["steps"]
        assert steps[1:] == [step]
        code, error = shell.refused("upgrade", "finish")
        assert (code, error["code"]) == (OlderProcessError.exit_code, "older-process")
        assert error["facts"]["release"] == BEFORE.name
        assert f"process {old.pid} on " in error["facts"]["process"]
        assert error["hint"] == "end it, then finish"
        seen = {one["release"]: one for one in shell.json("upgrade", "status")["processes"]}
        assert seen[BEFORE.name]["older"]
        assert not seen[THIS.name]["older"]
        assert seen[BEFORE.name]["reads"] == {"entry": 4, "state": 2}
        assert gate(shell) == BEFORE.formats
        old.communicate("")
    assert shell.json("upgrade", "finish")["finished"]
    assert gate(shell) == NEWEST
    assert shell.json("upgrade", "plan")["steps"] == []
    assert "nothing is to be done" in shell.ok("upgrade", "plan")


def test_who_was_killed_does_not_hold_it_up(shell: Shell) -> None:
    with working(OF_A_RELEASE, shell.lake, BEFORE.name) as old:
        old.kill()
        old.wait()
        assert shell.json("upgrade", "finish")["finished"]


def test_a_process_of_before_reports_is_seen_by_its_lock(shell: Shell) -> None:
    with working(OF_BEFORE_REPORTS, shell.lake) as old:
        code, error = shell.refused("upgrade", "finish")
        assert (code, error["code"]) == (OlderProcessError.exit_code, "older-process")
        assert error["facts"]["processes"] == "1"
        assert error["facts"]["process"] == f"process {old.pid}"
        assert error["facts"]["release"] == "does not say"
        assert "unknown, older" in shell.ok("upgrade", "status")
    assert shell.json("upgrade", "finish")["finished"]


def test_a_skipped_release_is_named_with_the_one_to_go_by(shell: Shell) -> None:
    with working(OF_A_RELEASE, shell.lake, RELEASES[-3].name):
        for command in ("plan", "finish"):
            code, error = shell.refused("upgrade", command)
            assert (code, error["code"]) == (ReleaseSkippedError.exit_code, "release-skipped")
            assert BEFORE.name in error["hint"]
    assert gate(shell) == BEFORE.formats


def test_a_newer_gate_refuses_this_program(shell: Shell) -> None:
    SqliteTableRegistry(shell.lake).raise_formats(Formats(entry=99, state=NEWEST.state))
    for command in ("plan", "finish"):
        code, error = shell.refused("upgrade", command)
        assert (code, error["code"]) == (NewerFormatError.exit_code, "newer-format")
        assert error["hint"] == "upgrade this installation of lakebed"
    assert shell.json("upgrade", "status")["allowed"]["entry"] == 99


def test_status_is_for_people_too(shell: Shell) -> None:
    lines = shell.ok("upgrade", "status").splitlines()
    assert lines[0] == f"this program is of release {THIS.name}"
    assert lines[1] == f"what may be written is of release {BEFORE.name}"
    assert "entry  4        6" in lines
    assert any(THIS.name in line and "process" in line for line in lines[-2:])


def test_processes_of_this_release_are_no_obstacle(shell: Shell) -> None:
    with working(OF_A_RELEASE, shell.lake, THIS.name):
        assert len(shell.json("upgrade", "status")["processes"]) == 2
        assert shell.json("upgrade", "finish")["finished"]
