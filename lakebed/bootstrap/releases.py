"""Reports of the process that opened a lake: into its lock's file, or by a thread."""

from __future__ import annotations

import os
import random
import socket
import sys
from contextlib import ExitStack
from pathlib import Path

from lakebed.backends.local.process_folder import ProcessFolder
from lakebed.backends.local.processes import LockedProcessReports
from lakebed.ports.clock import Clock
from lakebed.ports.processes import ProcessReports
from lakebed.upgrades.release_reports import ReleaseReports, ReportMeanwhile

FUNCTION_VARIABLE = "AWS_LAMBDA_FUNCTION_NAME"
"""Set where this process is a function: it reports at its events, and its threads do not run
between them."""


def program_name() -> str:
    """Return what this process runs, and where."""
    program = Path(sys.argv[0] if sys.argv else "").name
    if program in {"", "-", "-c", "-m"}:
        program = "python"
    return f"{program}, process {os.getpid()} on {socket.gethostname()}"


def new_process_name(rng: random.Random) -> str:
    """Return a name that no other process has."""
    return f"{rng.getrandbits(64):016x}"


def report_by_lock(spill: Path, folder: ProcessFolder, clock: Clock) -> LockedProcessReports:
    """Write this process's report into the file that it has locked. Returns the processes that hold
    such locks in `spill`."""
    processes = LockedProcessReports(spill, folder)
    name = folder.path.name
    ReleaseReports(processes, clock=clock, process=name, program=program_name()).report()
    return processes


def report_meanwhile(
    processes: ProcessReports,
    opened: ExitStack,
    *,
    clock: Clock,
    rng: random.Random,
    first_seconds: float,
) -> None:
    """Report this process until `opened` is closed; not where it is a function."""
    if FUNCTION_VARIABLE in os.environ:
        return
    reports = ReleaseReports(
        processes, clock=clock, process=new_process_name(rng), program=program_name()
    )
    opened.callback(ReportMeanwhile(reports, first_seconds=first_seconds).close)
