"""Machines of EC2 on which tasks run whose capacity is `ec2`: of which types, and how many.

Source: "Amazon EC2 instance type naming conventions" and "General purpose", "Compute optimized" and
"Memory optimized", Amazon EC2 Instance Types Guide.
"""

from __future__ import annotations

import re
from typing import Annotated

import msgspec
from msgspec import Meta

from lakebed.errors import InvalidError

_FAMILY = "[cmr]([5-9]|[1-9][0-9])[a-z]{0,4}"
_SIZE = "(large|xlarge|([2-9]|[1-9][0-9])xlarge)"
_TYPE = rf"{_FAMILY}\.{_SIZE}"

TYPES = {"arm64": "m7g.xlarge,m6g.xlarge", "x86_64": "m7i.xlarge,m6i.xlarge"}
"""Types of machines by processor, where a setting names none."""
MIB_BY_FAMILY = {"c": 2_048, "m": 4_096, "r": 8_192}
"""Memory for each processor, by what a family is made for: computing, anything, memory."""
FOR_TASKS = 0.9
"""Smallest share of a machine's memory for tasks: its system and the agent of ECS have the rest."""
SYSTEM_DISK_GIB = 30
"""Part of a machine's disk for its system and the images of tasks, in GiB."""
DISK_GIB_MAX = 16_384
"""Greatest size of a disk of the kind that machines have, in GiB, as EC2 gives it."""

MachineTypes = Annotated[
    str,
    Meta(
        pattern=rf"\A({_TYPE}(,{_TYPE}){{0,7}})?\Z",
        description="Types of machines for tasks whose capacity is `ec2`, up to eight, with commas"
        " between: of the families c, m and r, generation 5 or later, without `flex` and `metal`;"
        " of the processor that `architecture` says, and of one number of vCPUs. None: two with"
        " four vCPUs.",
    ),
]
MachinesMax = Annotated[
    int,
    Meta(
        ge=1,
        le=100,
        description="Such machines at one time; none while no task runs. All tasks on `ec2` must"
        " fit on them.",
    ),
]


class MachineType(msgspec.Struct, frozen=True):
    """A type of machine.

    is_arm: else its processor is x86.
    vcpus: its processors.
    memory_mib: all of its memory.
    """

    name: str
    is_arm: bool
    vcpus: int
    memory_mib: int

    def room_for(self, *, vcpus: str, memory_mib: int, share: float = FOR_TASKS) -> int:
        """Return how many tasks of a size fit on one. share: of its memory that they may have."""
        by_memory = int(self.memory_mib * share) // memory_mib
        return min(int(self.vcpus / float(vcpus)), by_memory)


def machine_types(named: str, *, architecture: str) -> list[MachineType]:
    """Return types by their names, which have commas between.

    named: empty: the types that tasks have where no setting names some.
    architecture: `arm64`, or another processor.
    """
    processor = "arm64" if architecture == "arm64" else "x86_64"
    return [_type_of(name) for name in (named or TYPES[processor]).split(",")]


def check_machines(
    types: list[MachineType], *, architecture: str, vcpus: str, memory_mib: int
) -> None:
    """Check that tasks of a size can run on machines of these types.

    architecture: of tasks; of one that is not known before, any will do.

    Raises:
        InvalidError: types of several processors or sizes, or named twice; of another processor
            than the tasks'; one on which no task fits.
    """
    names = ",".join(one.name for one in types)
    if len({one.name for one in types}) < len(types):
        raise InvalidError("a type is named twice", machine_types=names, hint="name each once")
    if len({(one.is_arm, one.vcpus) for one in types}) > 1:
        hint = "ECS counts machines, not what they have: name types of one processor and size"
        raise InvalidError("machines of several kinds", machine_types=names, hint=hint)
    for one in types:
        if architecture in TYPES and one.is_arm != (architecture == "arm64"):
            raise InvalidError(
                "a machine of another processor than the tasks'",
                machine_type=one.name,
                architecture=architecture,
                hint="name types of that processor, or deploy with another `architecture`",
            )
        if not one.room_for(vcpus=vcpus, memory_mib=memory_mib):
            raise InvalidError(
                "no task fits on such a machine",
                machine_type=one.name,
                task_vcpus=vcpus,
                task_memory_mib=memory_mib,
                hint="name larger ones, or change `task_vcpus` and `task_memory_mib`",
            )


def check_room(
    types: list[MachineType], *, machines_max: int, tasks_max: int, vcpus: str, memory_mib: int
) -> None:
    """Check that all tasks fit at one time: one that finds no room is given up by ECS after 10 to
    30 minutes, and would be reported as one that cannot start.

    Raises:
        InvalidError: they do not.
    """
    room = min(one.room_for(vcpus=vcpus, memory_mib=memory_mib) for one in types) * machines_max
    if tasks_max > room:
        raise InvalidError(
            "more tasks than machines have room for",
            tasks=tasks_max,
            room=room,
            hint=f"deploy with `machines_max={-(-tasks_max * machines_max // room)}`, larger"
            " `machine_types`, or fewer tasks",
        )


def disk_of_machine(types: list[MachineType], *, vcpus: str, memory_mib: int, disk_gib: int) -> int:
    """Return the GiB of a machine's disk, which all tasks that may be on it share."""
    room = max(one.room_for(vcpus=vcpus, memory_mib=memory_mib, share=1) for one in types)
    return min(SYSTEM_DISK_GIB + room * disk_gib, DISK_GIB_MAX)


def _type_of(name: str) -> MachineType:
    family, _, size = name.partition(".")
    found = re.fullmatch(r"([cmr])[0-9]+([a-z]*)", family)
    assert found is not None, "names are checked where settings are read"
    times = size.removesuffix("xlarge")
    vcpus = 2 if size == "large" else 4 * int(times or 1)
    return MachineType(name, "g" in found[2], vcpus, vcpus * MIB_BY_FAMILY[found[1]])
