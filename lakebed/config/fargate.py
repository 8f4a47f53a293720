"""Checks what AWS allows of a task on Fargate: its processors, and how much memory goes with them.

Source: "Task definition parameters for Fargate", Amazon ECS Developer Guide.
"""

from __future__ import annotations

from typing import Literal

from lakebed.errors import InvalidError

Capacity = Literal["fargate", "fargate-spot", "ec2"]
ON_DEMAND: Capacity = "fargate"
SPOT: Capacity = "fargate-spot"
MACHINES: Capacity = "ec2"
"""Machines of the instance's own (`machines.py`)."""

ON_DEMAND_OF = 4
"""Number of tasks on spot capacity of which one is started on demand. While AWS has no spot
capacity, work goes on with these."""

CPU_UNITS_PER_VCPU = 1_024
GIB = 1_024
"""One GiB in MiB, as Fargate counts memory."""

DISK_GIB_MIN, DISK_GIB_MAX = 20, 200
"""The least comes with every task, at no cost; from 21 on a definition states it."""

_MEMORY_MIB: dict[str, tuple[int, ...]] = {
    "0.25": (1 * GIB, 2 * GIB),
    "0.5": tuple(range(1 * GIB, 4 * GIB + 1, GIB)),
    "1": tuple(range(2 * GIB, 8 * GIB + 1, GIB)),
    "2": tuple(range(4 * GIB, 16 * GIB + 1, GIB)),
    "4": tuple(range(8 * GIB, 30 * GIB + 1, GIB)),
    "8": tuple(range(16 * GIB, 60 * GIB + 1, 4 * GIB)),
    "16": tuple(range(32 * GIB, 120 * GIB + 1, 8 * GIB)),
}
"""Sizes of memory by vCPUs, in MiB. With 0.25 Fargate gives 512 MiB, too, which is left out: a
process that merges takes as much for its libraries and kernels alone."""


def cpu_units(vcpus: str) -> int:
    """Return processors as a task definition states them."""
    return int(float(vcpus) * CPU_UNITS_PER_VCPU)


def check_task_size(*, vcpus: str, memory_mib: int) -> None:
    """Raise InvalidError for memory that Fargate does not give with so many processors."""
    allowed = _MEMORY_MIB[vcpus]
    if memory_mib in allowed:
        return
    others = [other for other, sizes in _MEMORY_MIB.items() if memory_mib in sizes]
    fits = f"; {memory_mib} goes with {' or '.join(others)} vCPU" if others else ""
    raise InvalidError(
        "Fargate has no task of this size",
        task_vcpus=vcpus,
        task_memory_mib=memory_mib,
        hint=f"with {vcpus} vCPU give {_described(allowed)} MiB{fits}",
    )


def _described(sizes: tuple[int, ...]) -> str:
    if len(sizes) == 2:
        return f"{sizes[0]} or {sizes[1]}"
    return f"{sizes[0]} to {sizes[-1]} in steps of {sizes[1] - sizes[0]}"
