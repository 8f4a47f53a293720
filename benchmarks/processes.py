"""One measured run is one process, kept on some CPUs: what it used, imports taken off."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

IMPORTS_ONLY = "--imports-only"
SECONDS_MIN = 1e-3
"""Of work on few rows: less than how much the time of imports varies."""
ROOT = Path(__file__).parent.parent


class Used(NamedTuple):
    """cpu_seconds: user and system time of the whole process. wall_seconds: of the clock.
    peak_mib: of memory at once."""

    cpu_seconds: float
    wall_seconds: float
    peak_mib: float


class _Run(NamedTuple):
    used: Used
    modules: list[str]
    waited_seconds: float


def measured(module: str, *arguments: str, cpus: int = 1) -> Used:
    """Return what a run of a module took, less what its imports take.

    Loading compiled kernels is no import: it counts. wall_seconds are also less what it waited for
    other processes to import theirs; their processor time is in cpu_seconds.
    """
    run = _run(module, arguments, cpus)
    imports = _run(module, [IMPORTS_ONLY, *run.modules], cpus).used
    return Used(
        max(run.used.cpu_seconds - imports.cpu_seconds, SECONDS_MIN),
        max(run.used.wall_seconds - imports.wall_seconds - run.waited_seconds, SECONDS_MIN),
        run.used.peak_mib,
    )


def run_measured(main: Callable[..., float | None]) -> None:
    """Do what a measured module is for, with the command's arguments: its last line.

    main: returns the seconds that it waited for other processes to be ready, if it did. Prints what
    `measured` wants to know: peak memory, and which of our modules were imported.
    """
    waited = None
    if sys.argv[1:2] == [IMPORTS_ONLY]:
        for module in sys.argv[2:]:
            import_module(module)
    else:
        waited = main(*sys.argv[1:])
    ours = [name for name in sys.modules if name.partition(".")[0] == "lakebed"]
    print(json.dumps({"peak_mib": peak_mib(), "modules": ours, "waited_seconds": waited or 0.0}))


def _run(module: str, arguments: Sequence[str], cpus: int) -> _Run:
    command = [sys.executable, "-m", module, *arguments]
    with tempfile.TemporaryFile("w+") as out, _on_cpus(cpus):
        begun = time.perf_counter()
        process = subprocess.Popen(command, stdout=out, cwd=ROOT)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - begun
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, command)
        out.seek(0)
        told = json.loads(out.read().splitlines()[-1])
    used = Used(usage.ru_utime + usage.ru_stime, wall, told["peak_mib"])
    return _Run(used, told["modules"], told["waited_seconds"])


@contextmanager
def _on_cpus(count: int) -> Iterator[None]:
    """Keep processes that begin inside on so many CPUs, where the system allows it."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, set(sorted(allowed)[-count:]))
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


def peak_mib() -> float:
    """Return the peak of this program alone: Linux's ru_maxrss begins with the parent's."""
    status = Path("/proc/self/status")
    if status.exists():
        lines = status.read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))
    unit = 1 << 20 if sys.platform == "darwin" else 1 << 10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
