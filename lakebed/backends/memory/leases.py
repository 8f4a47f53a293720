"""Beats and owners in memory."""

from __future__ import annotations

import threading

from lakebed.ports.leases import (
    OWNERS_MAX,
    Owner,
    OwnerNumber,
    WorkerBeat,
    WorkerId,
    check_claim,
    check_report,
    check_worker,
)


class MemoryLeases:
    """Beats and owners."""

    def __init__(self) -> None:
        self._beats: dict[WorkerId, WorkerBeat] = {}
        self._owners: dict[str, Owner] = {}
        self._lock = threading.Lock()

    def beat(self, worker: WorkerId, report: bytes) -> None:
        """Say that a worker lives."""
        check_worker(worker)
        check_report(report)
        with self._lock:
            before = self._beats.get(worker)
            counter = 1 if before is None else before.counter + 1
            self._beats[worker] = WorkerBeat(worker, counter, report)

    def workers(self) -> list[WorkerBeat]:
        """Return the last beat of each worker."""
        with self._lock:
            return [beat for _, beat in sorted(self._beats.items())]

    def leave(self, worker: WorkerId) -> None:
        """Take a worker from the list."""
        check_worker(worker)
        with self._lock:
            self._beats.pop(worker, None)

    def claim(self, name: str, worker: WorkerId, at_least: int) -> OwnerNumber:
        """Make a worker the owner."""
        check_claim(name, worker, at_least)
        with self._lock:
            before = self._owners.get(name)
            number = OwnerNumber(max(at_least, 1, 0 if before is None else before.number + 1))
            self._owners[name] = Owner(name, number, worker)
            return number

    def release(self, name: str, worker: WorkerId, number: OwnerNumber) -> None:
        """Give up what a claim got."""
        check_claim(name, worker, number)
        with self._lock:
            if self._owners.get(name) == Owner(name, number, worker):
                self._owners[name] = Owner(name, number, WorkerId(""))

    def owner(self, name: str) -> Owner | None:
        """Return who owns it."""
        return self._owners.get(name)

    def owners(
        self, *, prefix: str = "", after: str = "", owners_max: int = OWNERS_MAX
    ) -> list[Owner]:
        """Return all that was ever claimed."""
        with self._lock:
            found = sorted(n for n in self._owners if n.startswith(prefix) and n > after)
            return [self._owners[name] for name in found[:owners_max]]
