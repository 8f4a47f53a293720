"""A log that does to each append what the test says, in order; then it is a good log."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress

from lakebed.backends.memory import MemoryTransactionLog
from lakebed.errors import (
    LogConflictError,
    LogRolledBackError,
    UnavailableError,
    UnknownOutcomeError,
)
from lakebed.model.names import EntryChecksum, Micros, TransactionNumber

Step = str | Callable[[], object]


class ScriptedLog:
    """A memory log behind a bad line.

    A step of `appends` is for one append: "good"; "throttled" (not sent); "lost" (sent, no answer,
    never lands); "unanswered" (landed, no answer); "late" (no answer, lands at `deliver`); "own
    try" (landed, then told "taken"); or a function that is called before a good one. A step of
    `reads` is for one read: "good", "throttled", a function, or a number of entries after which the
    read is cut. appended, read: how many calls there were.
    """

    def __init__(self, log: MemoryTransactionLog) -> None:
        self.log = log
        self.appends: list[Step] = []
        self.reads: list[Step | int] = []
        self.appended = 0
        self.read = 0
        self._late: list[tuple[TransactionNumber, bytes, EntryChecksum | None]] = []

    def append(
        self, number: TransactionNumber, body: bytes, after: EntryChecksum | None = None
    ) -> None:
        self.appended += 1
        step = self.appends.pop(0) if self.appends else "good"
        if callable(step):
            step()
        elif step == "throttled":
            raise UnavailableError("throttled")
        elif step == "late":
            self._late.append((number, body, after))
        elif step in ("unanswered", "own try"):
            self.log.append(number, body, after)
            if step == "own try":
                raise LogConflictError(number)
        if step in ("lost", "late", "unanswered"):
            raise UnknownOutcomeError("no answer", number=number)
        if step != "own try":
            self.log.append(number, body, after)

    def deliver(self) -> None:
        """Let late appends arrive; those whose number is taken do nothing."""
        for number, body, after in self._late:
            with suppress(LogConflictError, LogRolledBackError):
                self.log.append(number, body, after)
        self._late.clear()

    def read_after(
        self, number: TransactionNumber, checksum: EntryChecksum | None = None
    ) -> Iterator[tuple[TransactionNumber, bytes]]:
        self.read += 1
        step = self.reads.pop(0) if self.reads else "good"
        if callable(step):
            step()
        if step == "throttled":
            raise UnavailableError("throttled")
        for count, entry in enumerate(self.log.read_after(number, checksum)):
            if count == step:
                raise UnavailableError("cut")
            yield entry

    def read_scattered(self, after: TransactionNumber) -> Iterator[tuple[TransactionNumber, bytes]]:
        return self.log.read_scattered(after)

    def newest(self) -> TransactionNumber:
        return self.log.newest()

    def truncate(self, below: TransactionNumber) -> None:
        self.log.truncate(below)

    def resume(self, number: TransactionNumber, body: bytes, *, newest: TransactionNumber) -> None:
        self.log.resume(number, body, newest=newest)

    def store_time(self) -> Micros:
        return self.log.store_time()
