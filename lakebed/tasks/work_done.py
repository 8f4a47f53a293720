"""Counts what a round of scheduled work did."""

from __future__ import annotations

import msgspec


class WorkDone(msgspec.Struct, frozen=True):
    """The work that a round did, in counts."""

    batches_planned: int = 0
    batches_ingested: int = 0
    leaves_split: int = 0
    jobs_created: int = 0
    jobs_done: int = 0
    commits_answered: int = 0
    jobs_given_up: int = 0
    snapshots_written: int = 0
    files_collected: int = 0
    objects_swept: int = 0
    days_kept: int = 0
    usage_days_kept: int = 0

    def plus(self, other: WorkDone) -> WorkDone:
        """Return the sums."""
        mine, others = msgspec.structs.astuple(self), msgspec.structs.astuple(other)
        return WorkDone(*(a + b for a, b in zip(mine, others, strict=True)))

    @property
    def is_nothing(self) -> bool:
        """Return whether there was nothing to do."""
        return not any(msgspec.structs.astuple(self))
