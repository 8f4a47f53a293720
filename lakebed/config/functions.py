"""Holds AWS's limits of functions, and the share of them that states of tables get.

Source: "Configure ephemeral storage for Lambda functions", AWS Lambda Developer Guide.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

DISK_MIB_MIN, DISK_MIB_MAX = 512, 10_240
"""Smallest and greatest size of a function's /tmp, in MiB. Every function has the least at no
cost."""

FunctionDisk = Annotated[
    int,
    Meta(
        ge=DISK_MIB_MIN,
        le=DISK_MIB_MAX,
        description="Disk (`/tmp`) of each function that opens tables. Half of it keeps their"
        " states warm, about 150 bytes a file; writing a snapshot takes three times the state of"
        " its table. 512 cost nothing.",
    ),
]

FUNCTION_RUNS_MIN = 10
"""The least that Lambda gives an account."""

FunctionRuns = Annotated[
    int,
    Meta(
        ge=FUNCTION_RUNS_MIN,
        le=10_000,
        description="Runs of functions at one time that the account has room for: its quota of"
        " concurrent executions of Lambda, or a part of it. Each function with a queue takes"
        " a tenth of them, at least 2, the committer at least 8. More: more tables are worked"
        " on at one time.",
    ),
]

MIB = 1 << 20
SNAPSHOT_COPIES = 3
"""Copies of a state while a snapshot is written: the state, a copy, and the copy made compact."""


def states_bytes_max(disk_mib: int) -> int:
    """Return how many bytes of /tmp warm states of tables may take: half of it. The other half is
    for the state in use, which may be larger, and for a snapshot of it while one is written."""
    return disk_mib * MIB // 2


def full_disk_hint(disk_mib: int) -> str:
    """Return what to do when /tmp has no room for a table's state."""
    if disk_mib == DISK_MIB_MAX:
        return (
            f"functions have {disk_mib} MiB, the most that Lambda gives:"
            " spread the rows over several tables"
        )
    return (
        f"functions have {disk_mib} MiB: deploy with a larger `function_disk_mib`,"
        f" at most {DISK_MIB_MAX}"
    )
