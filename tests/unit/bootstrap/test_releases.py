"""A process that opened a lake says of which release it is, for as long as it lives."""

import os
import random
import socket
import sys
import threading
from contextlib import ExitStack
from pathlib import Path

import pytest

from lakebed.backends.local.process_folder import ProcessFolder
from lakebed.backends.memory.clock import VirtualClock
from lakebed.backends.memory.processes import MemoryProcessReports
from lakebed.bootstrap.releases import (
    FUNCTION_VARIABLE,
    new_process_name,
    program_name,
    report_by_lock,
    report_meanwhile,
)
from lakebed.model.releases import THIS
from lakebed.ports.processes import ProcessReport

WAIT_SECONDS = 60


class HeardReports(MemoryProcessReports):
    """Reports of processes; `heard` is set once there is one."""

    def __init__(self) -> None:
        super().__init__()
        self.heard = threading.Event()

    def report(self, report: ProcessReport) -> None:
        super().report(report)
        self.heard.set()


@pytest.mark.parametrize(
    ("words", "program"),
    [
        (["/usr/bin/lakebed", "run"], "lakebed"),
        (["jobs/nightly.py"], "nightly.py"),
        (["-c"], "python"),
        (["-m"], "python"),
        (["-"], "python"),
        ([""], "python"),
        ([], "python"),
    ],
)
def test_a_process_is_called_by_its_program_number_and_machine(
    monkeypatch: pytest.MonkeyPatch, words: list[str], program: str
) -> None:
    monkeypatch.setattr(sys, "argv", words)
    assert program_name() == f"{program}, process {os.getpid()} on {socket.gethostname()}"


def test_names_of_processes_have_sixteen_digits_and_differ() -> None:
    rng = random.Random(1)
    names = {new_process_name(rng) for _ in range(100)}
    assert len(names) == 100
    assert {len(name) for name in names} == {16}


def test_a_process_says_its_release_while_it_has_its_folder(tmp_path: Path) -> None:
    clock, own, other = VirtualClock(), ProcessFolder(tmp_path), ProcessFolder(tmp_path)
    report_by_lock(tmp_path, own, clock)
    processes = report_by_lock(tmp_path, other, clock)
    found = {one.process: one for one in processes.living(clock.now())}
    assert set(found) == {own.path.name, other.path.name}
    assert {one.release for one in found.values()} == {THIS.name}
    assert {one.program for one in found.values()} == {program_name()}
    own.close()
    assert [one.process for one in processes.living(clock.now())] == [other.path.name]
    other.close()


def test_a_process_is_reported_until_the_lake_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(FUNCTION_VARIABLE, raising=False)
    clock, processes = VirtualClock(), HeardReports()
    with ExitStack() as opened:
        report_meanwhile(processes, opened, clock=clock, rng=random.Random(1), first_seconds=0)
        assert processes.heard.wait(WAIT_SECONDS)
        (report,) = processes.living(clock.now())
        assert report.process == new_process_name(random.Random(1))
        assert (report.release, report.program) == (THIS.name, program_name())
    assert processes.living(clock.now()) == []


def test_a_function_starts_no_thread_that_reports(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FUNCTION_VARIABLE, "lakebed-dev-sweep")
    before = set(threading.enumerate())
    with ExitStack() as opened:
        report_meanwhile(
            HeardReports(), opened, clock=VirtualClock(), rng=random.Random(1), first_seconds=60
        )
        assert set(threading.enumerate()) <= before
