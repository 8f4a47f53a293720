"""Names of workers: what one is, and with whom it shares the work.

Each source split has one worker that is to own it, among those that would all take it. A worker of
some feeds only must not count for the others' feeds: what would be its own of these, it never
takes. So workers share with those of their own scope. Of another scope they know only who lives:
what that one holds is not free.
"""

from __future__ import annotations

from collections.abc import Collection

from lakebed.model.names import digest_of
from lakebed.ports.leases import WorkerId

ALL_PREFIX = "worker-"
"""Prefix of the name of a process that works on all feeds but those of functions."""
TASK_PREFIX = "task-"
"""Prefix of a task's name: only these processes are started and ended for what is wanted."""
TAKE_PREFIX = "take-"
"""Prefix of the name of a run of the function that takes what trickles."""

_ALL = (ALL_PREFIX, TASK_PREFIX)


def worker_name(number: int, only: Collection[str] = ()) -> WorkerId:
    """Return the name of a worker of these feeds; none: of all. number: by chance."""
    if not only:
        return WorkerId(f"{ALL_PREFIX}{number:016x}")
    scope = digest_of(*(name.encode() for name in sorted(set(only)))).hex()[:16]
    return WorkerId(f"only-{scope}-{number:016x}")


def scope_of(worker: WorkerId) -> str:
    """Return what it has in common with those that work on the same feeds."""
    return ALL_PREFIX if worker.startswith(_ALL) else worker.rpartition("-")[0]


def sharing(worker: WorkerId, living: Collection[WorkerId]) -> set[WorkerId]:
    """Return those that a worker shares its feeds with, itself among them."""
    scope = scope_of(worker)
    return {worker, *(other for other in living if scope_of(other) == scope)}
