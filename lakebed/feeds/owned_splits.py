"""Which source splits of a connection one process owns.

Owning brings progress and no safety: two that believe to own one are kept apart by the chain of
positions (protocol R2, R3).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Protocol

from lakebed.feeds.claims import wanted_splits
from lakebed.model.feeds.positions import position_name
from lakebed.model.names import ConnectionId
from lakebed.ports.leases import Leases, Owner, OwnerNumber, WorkerId

HANDOVER_SECONDS = 30.0
"""How long a worker that lives may go on with a source split that is to be another's: it commits
what it holds."""

NewestOwners = Callable[[list[str]], Mapping[str, int]]
"""Gives the newest owner of source splits that the table knows."""


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


class LeasedSplits:
    """The fair share of one worker among those that live.

    living: gives the workers that live, this one among them.
    """

    def __init__(
        self,
        *,
        worker: WorkerId,
        leases: Leases,
        living: Callable[[], Collection[WorkerId]],
        connection: ConnectionId,
        monotonic: Callable[[], float],
    ) -> None:
        self._worker = worker
        self._leases = leases
        self._living = living
        self._connection = connection
        self._monotonic = monotonic
        self._mine: dict[str, OwnerNumber] = {}
        self._awaited: dict[str, float] = {}

    def owned(self, splits: list[str], newest: NewestOwners) -> Mapping[str, int]:
        """Return this worker's share, as far as those that had it before have let go."""
        living = self._living()
        owners = self._owners()
        for split, number in list(self._mine.items()):
            owner = owners.get(split)
            if owner is None or owner.number != number or owner.worker != self._worker:
                del self._mine[split]  # another worker took it over
        wanted = wanted_splits(self._worker, splits, living)
        free = [
            split
            for split in wanted
            if split not in self._mine and self._may_take(split, owners.get(split), living)
        ]
        if free:
            floors = newest(free)
            for split in free:
                self._mine[split] = self._leases.claim(
                    self._name(split), self._worker, floors.get(split, 0) + 1
                )
                self._awaited.pop(split, None)
        return {split: number for split, number in self._mine.items() if split in wanted}

    def release(self, split: str) -> None:
        """Let the next owner have it at once."""
        number = self._mine.pop(split, None)
        if number is not None:
            self._leases.release(self._name(split), self._worker, number)

    def _may_take(self, split: str, owner: Owner | None, living: Collection[WorkerId]) -> bool:
        """Whether no living worker has it, or one that had long enough to let go."""
        if owner is None or owner.worker == self._worker or owner.worker not in living:
            return True
        since = self._awaited.setdefault(split, self._monotonic())
        return self._monotonic() - since >= HANDOVER_SECONDS

    def _owners(self) -> dict[str, Owner]:
        """Return who owns each source split of the connection."""
        prefix, found, after = f"{self._connection}/", dict[str, Owner](), ""
        while page := self._leases.owners(prefix=prefix, after=after):
            found |= {owner.name.removeprefix(prefix): owner for owner in page}
            after = page[-1].name
        return found

    def _name(self, split: str) -> str:
        return position_name(self._connection, split)
