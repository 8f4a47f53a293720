"""Which worker is to own which source split: rendezvous hashing, a pure decision.

Each source split goes to the worker whose hash together with its name is greatest. So all workers
that see the same list agree, and a worker that joins or ends moves nothing but its own share.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable

from lakebed.ports.leases import WorkerId


def wanted_owner(split: str, workers: Collection[WorkerId]) -> WorkerId | None:
    """Return the worker that is to own a source split; None: there is no worker."""
    return max(workers, key=lambda worker: (_weight(split, worker), worker), default=None)


def wanted_splits(
    worker: WorkerId, splits: Iterable[str], workers: Collection[WorkerId]
) -> list[str]:
    """Return the source splits that a worker is to own, in their order."""
    return [split for split in splits if wanted_owner(split, workers) == worker]


def _weight(split: str, worker: WorkerId) -> bytes:
    # neither holds a zero, so no two pairs are one text
    return hashlib.blake2b(f"{split}\0{worker}".encode(), digest_size=8).digest()
