"""One measured run is one process, kept on one CPU: what it used, imports taken off."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

IMPORTS_ONLY = "--imports-only"
ROOT = Path(__file__).parent.parent


class Used(NamedTuple):
    """cpu_seconds: user and system time of the whole process. peak_mib: of memory at once."""

    cpu_seconds: float
    peak_mib: float


def measured(module: str, *arguments: str) -> Used:
    """Return what a run of a module took, less what its imports take."""
    whole = _used(module, arguments)
    imports = _used(module, [*arguments, IMPORTS_ONLY])
    return Used(whole.cpu_seconds - imports.cpu_seconds, whole.peak_mib)


def tell_peak() -> None:
    """Print this process's peak memory, as the last thing that a measured module does."""
    print(json.dumps({"peak_mib": _peak_mib()}))


def _used(module: str, arguments: Sequence[str]) -> Used:
    command = [sys.executable, "-m", module, *arguments]
    with tempfile.TemporaryFile("w+") as out, _one_cpu():
        process = subprocess.Popen(command, stdout=out, cwd=ROOT)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, command)
        out.seek(0)
        peak = json.loads(out.read().splitlines()[-1])["peak_mib"]
    return Used(usage.ru_utime + usage.ru_stime, peak)


@contextmanager
def _one_cpu() -> Iterator[None]:
    """Keep processes that begin inside on one CPU, where the system allows it."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(allowed)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


def _peak_mib() -> float:
    """Return the peak of this program alone: Linux's ru_maxrss begins with the parent's."""
    status = Path("/proc/self/status")
    if status.exists():
        lines = status.read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))
    unit = 1 << 20 if sys.platform == "darwin" else 1 << 10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
