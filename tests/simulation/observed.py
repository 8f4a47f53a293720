"""The true logs and objects of a world. Auditors see each write as it lands."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from lakebed.backends.memory import MemoryObjectStore, MemoryTransactionLog, MemoryTransactionLogs
from lakebed.errors import LogConflictError
from lakebed.model.names import EntryChecksum, Micros, TableId, TransactionNumber
from lakebed.model.paths import file_of, table_of
from lakebed.ports.clock import Clock
from lakebed.ports.object_store import ObjectFacts
from tests.simulation.auditor import Auditor


class ObservedLog(MemoryTransactionLog):
    """A log that tells its auditor."""

    def __init__(self, clock: Clock, auditor: Auditor) -> None:
        super().__init__(clock)
        self.auditor = auditor

    def append(
        self, number: TransactionNumber, body: bytes, after: EntryChecksum | None = None
    ) -> None:
        """Write entry `number` if it is free."""
        super().append(number, body, after)
        self.auditor.landed(number, body)


class ForgetfulLog(ObservedLog):
    """Broken: numbers whose bodies were truncated are free again."""

    def append(
        self, number: TransactionNumber, body: bytes, after: EntryChecksum | None = None
    ) -> None:
        """Write entry `number` if no body lies there."""
        if number in self._bodies:
            raise LogConflictError(number)
        self._bodies[number] = bytes(body)
        self.auditor.landed(number, body)


class LeapingLog(ObservedLog):
    """Broken: who reads on from below what was truncated gets what is left, and is not told."""

    def read_after(
        self, number: TransactionNumber, checksum: EntryChecksum | None = None
    ) -> Iterator[tuple[TransactionNumber, bytes]]:
        """Yield the entries after `number` that still have a body."""
        yield from super().read_after(TransactionNumber(max(number, self._oldest - 1)))


class GapLog(ObservedLog):
    """Broken: an entry is written without a look at the one before it."""

    def append(
        self, number: TransactionNumber, body: bytes, after: EntryChecksum | None = None
    ) -> None:
        """Write entry `number` if it is free."""
        if number < self._oldest or number in self._bodies:
            raise LogConflictError(number)
        self._bodies[number] = bytes(body)
        self.auditor.landed(number, body)


class TrustingLog(ObservedLog):
    """Broken: who knows more than the log, or another one, is told that nothing is new."""

    def read_after(
        self, number: TransactionNumber, checksum: EntryChecksum | None = None
    ) -> Iterator[tuple[TransactionNumber, bytes]]:
        """Yield entries from `number + 1` on, if there are any."""
        if number in self._bodies or number < self._oldest:
            yield from super().read_after(number)


class ObservedLogs(MemoryTransactionLogs):
    """Logs that tell their auditors. kind: of each log."""

    def __init__(
        self, clock: Clock, auditor_of: Callable[[TableId], Auditor], kind: type[ObservedLog]
    ) -> None:
        super().__init__(clock)
        self._auditor_of = auditor_of
        self._kind = kind

    def open(self, table: TableId) -> ObservedLog:
        """Return a table's log."""
        if table not in self._logs:
            self._logs[table] = self._kind(self._clock, self._auditor_of(table))
        log = self._logs[table]
        assert isinstance(log, ObservedLog)
        return log


class ObservedObjects(MemoryObjectStore):
    """Objects whose deletion is told. spoils: whether one is damaged as it is put. put_at: when
    each was first put."""

    def __init__(
        self,
        clock: Clock,
        auditor_of: Callable[[TableId], Auditor],
        spoils: Callable[[str], bool],
    ) -> None:
        super().__init__(clock)
        self._auditor_of = auditor_of
        self._spoils = spoils
        self.put_at: dict[str, Micros] = {}

    def delete(self, paths: Iterable[str]) -> None:
        """Delete objects."""
        for path in paths:
            table, file = table_of(path), file_of(path)
            if table is not None and file is not None and path in self._objects:
                self._auditor_of(table).deleting(file)
            super().delete([path])

    def paths(self) -> Iterator[str]:
        """Yield every object."""
        yield from sorted(self._objects)

    def facts(self, path: str) -> ObjectFacts | None:
        """Return what is at `path`."""
        found = self._objects.get(path)
        return found.facts if found else None

    def damage(self, path: str) -> None:
        """Flip a bit in the middle of an object."""
        found = self._objects[path]
        middle = len(found.body) // 2
        body = bytearray(found.body)
        body[middle] ^= 1
        self._objects[path] = type(found)(bytes(body), found.facts)

    def _put(self, writer, object_) -> None:  # noqa: ANN001 - as the store it extends has it
        super()._put(writer, object_)
        if self._spoils(object_.facts.path):
            self.damage(object_.facts.path)
        self.put_at.setdefault(object_.facts.path, self._clock.now())
