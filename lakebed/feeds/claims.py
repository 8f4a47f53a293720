"""Decides which worker is to own which source split, by rendezvous hashing. Pure.

Each source split goes to the worker whose hash together with its name is greatest. So all workers
that see the same list agree, and a worker that joins or ends moves nothing but its own share.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping

import msgspec

from lakebed.ports.leases import Owner, OwnerNumber, WorkerId

GIVE_BACK_SECONDS, GIVE_BACK_PARTS = 2.0, 4
"""Seconds between two parts of what a worker is to give back, and number of these parts: a worker
that joins slows nothing down, and has its share soon, however many source splits that is."""


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


class Moves(msgspec.Struct, frozen=True):
    """The next claims and releases of source splits by a worker.

    claim: source splits to claim at once: they are to be its own, and no living worker has them.
    give_back: that it has and that are to be another's: drained first, then released, a part of
        them every GIVE_BACK_SECONDS.
    lost: that it believes to have, and another worker has claimed: it drops their batches.
    release: claims of its own that it does not know of, as their answer was lost, or that the state
        refused, of what is to be another's: without this no worker would ever claim that.
    """

    claim: tuple[str, ...] = ()
    give_back: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    release: tuple[Owner, ...] = ()


def moves(
    worker: WorkerId,
    splits: Iterable[str],
    living: Collection[WorkerId],
    owners: Mapping[str, Owner],
    held: Mapping[str, OwnerNumber],
    *,
    sharing: Collection[WorkerId] | None = None,
) -> Moves:
    """Return what a worker does next, as it sees the world.

    splits: all source splits, by the names that are claimed.
    living: with itself.
    owners: as the store says.
    held: what it has claimed and not released, with the number of its claim.
    sharing: of those that live, who would take these source splits at all; None: all.

    What it holds of a source split that is gone is given back.
    """
    known = dict.fromkeys(splits)
    lost = [name for name, number in held.items() if _has_another(owners.get(name), worker, number)]
    mine = [name for name in held if name not in lost]
    able = living if sharing is None else sharing
    wanted = {name: wanted_owner(name, able) for name in known}
    claim = [
        name
        for name in known
        if wanted[name] == worker
        and name not in mine
        and _is_free(owners.get(name), worker, living)
    ]
    give_back = [name for name in mine if wanted.get(name) != worker]
    release = [
        owner
        for name, owner in owners.items()
        if owner.worker == worker and name not in held and wanted.get(name) != worker
    ]
    return Moves(tuple(claim), tuple(give_back), tuple(lost), tuple(release))


def _is_free(owner: Owner | None, worker: WorkerId, living: Collection[WorkerId]) -> bool:
    return owner is None or owner.worker in {"", worker} or owner.worker not in living


def _has_another(owner: Owner | None, worker: WorkerId, number: OwnerNumber) -> bool:
    """Return whether a newer claim is there. A store that was restored may know an older one: what
    counts then is the owner's number in the table's state (protocol R3)."""
    return owner is not None and owner.number >= number and owner.worker not in {worker, ""}
