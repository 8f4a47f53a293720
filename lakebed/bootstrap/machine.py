"""Measures how much of this machine a process may use: its CPUs, memory and files, less in a
container.

A task on Fargate sees the machine that it shares, and no limits of a container as it may pass them:
its variables say its size (docs/design/tasks.md).
"""

from __future__ import annotations

import os
import re
import resource
from contextlib import suppress
from pathlib import Path

from lakebed.errors import InvalidError
from lakebed.statestore.table_state.closable_state import OPEN_STATES_MAX

PROCESSES = "LAKEBED_MERGE_PROCESSES"
"""The variable with the number of processes that share a large merge; 1: only the one that merges.
Not set: as many as pay."""
TASK_VCPUS, TASK_MEMORY_MIB = "LAKEBED_TASK_VCPUS", "LAKEBED_TASK_MEMORY_MIB"
"""The size of the task that this process is; not set: it is none. Its stack sets both."""
TASK_WORK_FRACTION = 8
"""Divisor of a task's memory: one part is for one merge, or one sorter and the files that are
written from it. The rest: libraries, copies of rows on their way, what lookups keep, a margin for
Arrow's allocator."""
PROCESSES_MAX = 8
"""More are slower: pages at the ends of ranges are decoded twice, and one process writes."""
PROCESS_BYTES = 1 << 30
"""Bytes of memory for each process that merges: its libraries, kernels and buffers take half."""
OPEN_TABLES_MIN = 4
FILES_FOR_A_TABLE = 16
"""Open files of a process for each open table: six of the table, and ten for all else."""
MIB = 1 << 20
CGROUP = Path("/sys/fs/cgroup")


def merge_processes(cgroup: Path = CGROUP) -> int:
    """Return how many processes may share a merge, this one among them.

    Raises:
        InvalidError: the variable says what is no number of processes.
    """
    given = os.environ.get(PROCESSES)
    if given is not None:
        if not given.isascii() or not given.isdigit() or not 1 <= int(given) <= PROCESSES_MAX:
            hint = f"set {PROCESSES} to 1 to {PROCESSES_MAX}, or leave it out"
            raise InvalidError("not a number of processes", got=ascii(given)[:40], hint=hint)
        return int(given)
    return max(1, min(PROCESSES_MAX, cpus(cgroup), memory_bytes(cgroup) // PROCESS_BYTES))


def cpus(cgroup: Path = CGROUP) -> int:
    """Return how many whole CPUs this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)  # not everywhere
    count = len(affinity(0)) if affinity else os.cpu_count() or 1
    quota = _first(cgroup / "cpu.max", cgroup / "cpu" / "cpu.cfs_quota_us")
    period = _last(cgroup / "cpu.max", cgroup / "cpu" / "cpu.cfs_period_us")
    if quota is not None and period:
        count = min(count, max(1, quota // period))
    given = _task_size(TASK_VCPUS)
    return count if given is None else min(count, max(1, int(given)))


def memory_bytes(cgroup: Path = CGROUP) -> int:
    """Return how many bytes of memory this process may use."""
    size = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    limit = _first(cgroup / "memory.max", cgroup / "memory" / "memory.limit_in_bytes")
    given = _task_size(TASK_MEMORY_MIB)
    limits = [
        size,
        *([] if limit is None else [limit]),
        *([] if given is None else [int(given) * MIB]),
    ]
    return min(limits)


def task_work_bytes(cgroup: Path = CGROUP) -> int:
    """Return how much memory one merge or one sorter of a task may take."""
    return memory_bytes(cgroup) // TASK_WORK_FRACTION


def task_size() -> tuple[float, float] | None:
    """Return the vCPUs and the GiB of memory of the task that this process is; None: it is none."""
    vcpus, memory_mib = _task_size(TASK_VCPUS), _task_size(TASK_MEMORY_MIB)
    if vcpus is None or memory_mib is None:
        return None
    return float(vcpus), float(memory_mib) / 1_024


def open_tables_max() -> int:
    """Return how many tables may have their state and their log open at once: 64, fewer where this
    process may open fewer than 1,024 files. Each takes six of them."""
    files_max = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if files_max == resource.RLIM_INFINITY:
        return OPEN_STATES_MAX
    return max(OPEN_TABLES_MIN, min(OPEN_STATES_MAX, files_max // FILES_FOR_A_TABLE))


def _task_size(variable: str) -> float | None:
    given = os.environ.get(variable)
    if given is None:
        return None
    if not re.fullmatch(r"[0-9]{1,6}(\.[0-9]{1,2})?", given) or not float(given):
        hint = "deploy the instance again: its stacks set it"
        raise InvalidError(
            f"{variable} is not the size of a task", got=ascii(given)[:40], hint=hint
        )
    return float(given)


def _first(*files: Path) -> int | None:
    return _number(files, 0)


def _last(*files: Path) -> int | None:
    return _number(files, -1)


def _number(files: tuple[Path, ...], index: int) -> int | None:
    """Return a number of the first file that is there; None: none has one, which means no limit."""
    for file in files:
        with suppress(OSError, IndexError):
            word = file.read_text(encoding="ascii").split()[index]
            return int(word) if word.isdigit() else None
    return None
