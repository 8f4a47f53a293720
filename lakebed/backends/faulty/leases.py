"""Leases whose requests are lost, late or unanswered, and a store of them that was restored."""

from __future__ import annotations

import msgspec

from lakebed.backends.faulty.registry_faults import RegistryFault, RegistryFaults
from lakebed.ports.leases import OWNERS_MAX, Leases, Owner, OwnerNumber, WorkerBeat, WorkerId


class FaultyLeases:
    """Leases as one worker meets them."""

    def __init__(self, leases: Leases, faults: RegistryFaults) -> None:
        self._leases = leases
        self._faults = faults

    def beat(self, worker: WorkerId, report: bytes) -> None:
        """Say that a worker lives, perhaps."""
        self._faults.write("beat", lambda: self._leases.beat(worker, report))

    def workers(self) -> list[WorkerBeat]:
        """Return the last beat of each worker."""
        return self._faults.read(self._leases.workers)

    def leave(self, worker: WorkerId) -> None:
        """Take a worker from the list, perhaps."""
        self._faults.write("leave", lambda: self._leases.leave(worker))

    def claim(self, name: str, worker: WorkerId, at_least: int) -> OwnerNumber:
        """Make a worker the owner, perhaps."""
        return self._faults.write("claim", lambda: self._leases.claim(name, worker, at_least))

    def release(self, name: str, worker: WorkerId, number: OwnerNumber) -> None:
        """Give up what a claim got, perhaps."""
        self._faults.write("release", lambda: self._leases.release(name, worker, number))

    def owner(self, name: str) -> Owner | None:
        """Return who owns it."""
        return self._faults.read(lambda: self._leases.owner(name))

    def owners(
        self, *, prefix: str = "", after: str = "", owners_max: int = OWNERS_MAX
    ) -> list[Owner]:
        """Return all that was ever claimed."""
        return self._faults.read(
            lambda: self._leases.owners(prefix=prefix, after=after, owners_max=owners_max)
        )


class RestoredLeases:
    """A store of leases that is restored from an old copy now and then: it forgets claims, and
    hands out numbers again that are no higher than `at_least` makes them (protocol R3)."""

    def __init__(self, leases: Leases, faults: RegistryFaults) -> None:
        self._leases = leases
        self._faults = faults
        self._back: dict[str, int] = {}
        """By how much the numbers of a name are too low."""

    def beat(self, worker: WorkerId, report: bytes) -> None:
        """Say that a worker lives."""
        self._leases.beat(worker, report)

    def workers(self) -> list[WorkerBeat]:
        """Return the last beat of each worker."""
        return self._leases.workers()

    def leave(self, worker: WorkerId) -> None:
        """Take a worker from the list."""
        self._leases.leave(worker)

    def claim(self, name: str, worker: WorkerId, at_least: int) -> OwnerNumber:
        """Make a worker the owner; the number may be an old one, but for `at_least`."""
        true = self._leases.claim(name, worker, at_least)
        if self._faults.happens(RegistryFault.STORE_RESTORED):
            self._back[name] = true - 1
        number = OwnerNumber(max(true - self._back.get(name, 0), at_least, 1))
        self._back[name] = true - number
        return number

    def release(self, name: str, worker: WorkerId, number: OwnerNumber) -> None:
        """Give up what a claim got."""
        found = self._leases.owner(name)
        if found is not None and self._as_restored(found).number == number:
            self._leases.release(name, worker, found.number)

    def owner(self, name: str) -> Owner | None:
        """Return who owns it, as far as the store remembers."""
        found = self._leases.owner(name)
        return None if found is None else self._as_restored(found)

    def owners(
        self, *, prefix: str = "", after: str = "", owners_max: int = OWNERS_MAX
    ) -> list[Owner]:
        """Return all that was ever claimed."""
        found = self._leases.owners(prefix=prefix, after=after, owners_max=owners_max)
        return [self._as_restored(one) for one in found]

    def _as_restored(self, owner: Owner) -> Owner:
        number = max(owner.number - self._back.get(owner.name, 0), 1)
        return msgspec.structs.replace(owner, number=OwnerNumber(number))
