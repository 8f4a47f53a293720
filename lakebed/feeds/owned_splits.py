"""Claims source splits of a connection for one process, and knows which it owns.

Owning brings progress and no safety: two that believe to own one are kept apart by the chain of
positions (protocol R2, R3).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol

from lakebed.feed_errors import WorkerLostError
from lakebed.feeds.claims import GIVE_BACK_PARTS, GIVE_BACK_SECONDS, moves
from lakebed.model.feeds.positions import position_name
from lakebed.model.names import ConnectionId
from lakebed.ports.leases import Leases, Owner, OwnerNumber, WorkerId

MISSED_SECONDS = 5.0
"""Seconds that a worker which was taken for dead is missed, until its loss stops a connection: two
beats of each other one."""
NewestOwners = Callable[[list[str]], Mapping[str, int]]
"""Gives the newest owner of source splits that the table knows."""
Sharing = Callable[[Collection[WorkerId]], Collection[WorkerId]]


class OwnedSplits(Protocol):
    """Says what this process owns."""

    def owned(self, splits: list[str], newest: NewestOwners) -> Mapping[str, int]:
        """Return which of the source splits that there are this process owns, with the number of
        its claim.

        Raises:
            UnavailableError, UnknownOutcomeError: ask again.
        """
        ...

    def release(self, split: str) -> None:
        """Give up a source split: what was held of it is committed or forgotten.

        Raises:
            As `owned`.
        """
        ...


class OwnsAll:
    """One process that works alone, or that does not mind others."""

    def owned(self, splits: list[str], newest: NewestOwners) -> Mapping[str, int]:
        """Return all of them."""
        return dict.fromkeys(splits, 0)

    def release(self, split: str) -> None:
        """Do nothing: no other worker waits for it."""


def fenced_splits(
    connection: ConnectionId, had: Mapping[str, int], newest: NewestOwners, position: str
) -> list[str]:
    """Return which source splits a table takes no longer from this process, by name; all where none
    is found.

    had: the numbers of its claims.
    position: name of the one that the table, or that of the quarantine, has refused.

    Raises:
        As `newest`.
    """
    owners = newest(sorted(had))
    fenced = [
        name
        for name, number in had.items()
        if owners.get(name, 0) > number or position_name(connection, name) == position
    ]
    return sorted(fenced or had)


class LeasedSplits:
    """The fair share of one worker among those that live.

    living: gives the workers that live, this one among them.
    sharing: of them, those that would take these source splits at all.
    stops_at_loss: whether what a worker that was lost had is given up, instead of taken over.
    """

    def __init__(
        self,
        *,
        worker: WorkerId,
        leases: Leases,
        living: Callable[[], Collection[WorkerId]],
        connection: ConnectionId,
        monotonic: Callable[[], float],
        stops_at_loss: bool = False,
        sharing: Sharing = lambda living: living,
    ) -> None:
        self._worker = worker
        self._leases = leases
        self._living = living
        self._connection = connection
        self._monotonic = monotonic
        self._stops_at_loss = stops_at_loss
        self._sharing = sharing
        self._mine: dict[str, OwnerNumber] = {}
        self._leaving: set[str] = set()
        self._gave_back: float | None = None
        self._at_once = 0
        self._missed: dict[WorkerId, float] = {}

    def owned(self, splits: list[str], newest: NewestOwners) -> Mapping[str, int]:
        """Return this worker's share, as far as those that had it before have let go.

        Raises:
            WorkerLostError: one of them was lost. It is noted: who asks again gets its share.
        """
        owners, living = self._owners(), self._living()
        if self._stops_at_loss:
            living = self._with_missed(owners, living)
        names = [self._name(split) for split in splits]
        able = self._sharing(living)
        found = moves(self._worker, names, living, owners, self._mine, sharing=able)
        for name in found.lost:
            self._forget(name)
        for owner in found.release:
            self._leases.release(owner.name, self._worker, owner.number)
        if found.claim:
            floors = newest([self._split(name) for name in found.claim])
            for name in found.claim:
                at_least = floors.get(self._split(name), 0) + 1
                self._mine[name] = self._leases.claim(name, self._worker, at_least)
        self._leaving &= set(found.give_back)
        self._give_back(found.give_back)
        return {
            self._split(name): number
            for name, number in self._mine.items()
            if name not in self._leaving
        }

    def release(self, split: str) -> None:
        """Let the next owner have it at once."""
        name = self._name(split)
        number = self._mine.get(name)
        if number is not None:
            self._leases.release(name, self._worker, number)
        self._forget(name)

    def _with_missed(
        self, owners: Mapping[str, Owner], living: Collection[WorkerId]
    ) -> Collection[WorkerId]:
        """Stop if a worker was lost; what it had is free afterwards, for who starts again. Return
        those that live, with such as are missed only now: a worker that has heard no beat yet, as
        the store did not answer, misses all the others."""
        now = self._monotonic()
        absent = {one.worker for one in owners.values() if one.worker} - set(living)
        self._missed = {worker: self._missed.get(worker, now) for worker in absent}
        lost = {worker for worker, at in self._missed.items() if now - at >= MISSED_SECONDS}
        if not lost:
            return {*living, *absent}
        theirs = [one for one in owners.values() if one.worker in lost]
        for one in theirs:
            self._leases.release(one.name, one.worker, one.number)
        raise WorkerLostError(
            "a worker was lost", worker=min(lost), source_split=self._split(theirs[0].name)
        )

    def _give_back(self, names: Sequence[str]) -> None:
        """Let go of some more now and then: a worker that joins slows nothing down."""
        waiting = [name for name in names if name not in self._leaving]
        if not waiting:
            self._at_once = 0
            return
        now = self._monotonic()
        if self._gave_back is None or now - self._gave_back >= GIVE_BACK_SECONDS:
            self._at_once = max(self._at_once, -(-len(waiting) // GIVE_BACK_PARTS))
            self._leaving.update(waiting[: self._at_once])
            self._gave_back = now

    def _forget(self, name: str) -> None:
        self._mine.pop(name, None)
        self._leaving.discard(name)

    def _owners(self) -> dict[str, Owner]:
        """Return who owns each source split of the connection, by the name that is claimed."""
        prefix, found, after = self._name(""), dict[str, Owner](), ""
        while page := self._leases.owners(prefix=prefix, after=after):
            found |= {owner.name: owner for owner in page}
            after = page[-1].name
        return found

    def _name(self, split: str) -> str:
        return f"{self._connection}/{split}"

    def _split(self, name: str) -> str:
        return name.partition("/")[2]
