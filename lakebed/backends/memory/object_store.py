"""Objects in memory. Listings never lag here; `faulty` makes them lag."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import anycrc
import msgspec

from lakebed.errors import (
    CorruptError,
    ObjectExistsError,
    ObjectMissingError,
    ObjectTooLargeError,
    UnavailableError,
)
from lakebed.model.names import MICROS_PER_SECOND, Micros
from lakebed.model.paths import check_path
from lakebed.ports.clock import Clock
from lakebed.ports.object_store import ObjectFacts, ObjectRanges

_CRC64 = anycrc.Model("CRC64-NVME")


class _Object(msgspec.Struct, frozen=True):
    body: bytes
    facts: ObjectFacts


class MemoryObjectWriter:
    """An object on its way."""

    def __init__(self, store: MemoryObjectStore, path: str, begun: Micros) -> None:
        self._store = store
        self._path = path
        self._parts: list[bytes] = []
        self._size = 0
        self._facts: ObjectFacts | None = None
        self.begun = begun

    def write(self, data: bytes | memoryview) -> int:
        """Add bytes."""
        assert self._facts is None, "the object is finished"
        self._size += len(data)
        limit = self._store.object_bytes_max
        if limit is not None and self._size > limit:
            self.abort()
            raise ObjectTooLargeError(self._path, limit)
        self._parts.append(bytes(data))
        return len(data)

    def finish(self) -> ObjectFacts:
        """Make the object visible."""
        assert self._facts is None, "the object is finished"
        body = b"".join(self._parts)
        facts = ObjectFacts(self._path, len(body), _CRC64.calc(body))
        self._store._put(self, _Object(body, facts))  # noqa: SLF001  one class in two halves
        self._facts = facts
        return facts

    def abort(self) -> None:
        """Forget what was written."""
        self._parts = []
        self._store._forget(self)  # noqa: SLF001  one class in two halves


class MemoryObjectStore:
    """Objects by path. clock: measures how old unfinished objects are. object_bytes_max: what one
    may have; None: any size."""

    def __init__(self, clock: Clock, *, object_bytes_max: int | None = None) -> None:
        self._clock = clock
        self.object_bytes_max = object_bytes_max
        self._objects: dict[str, _Object] = {}
        self._unfinished: dict[int, MemoryObjectWriter] = {}

    def create(self, path: str) -> MemoryObjectWriter:
        """Begin an object."""
        writer = MemoryObjectWriter(self, check_path(path), self._clock.now())
        self._unfinished[id(writer)] = writer
        return writer

    def look(self, path: str) -> ObjectFacts | None:
        """Return what is at `path`, or None."""
        found = self._objects.get(check_path(path))
        return found.facts if found else None

    def size_of(self, path: str) -> int | None:
        """Return how many bytes are at `path`, or None."""
        found = self.look(path)
        return None if found is None else found.size

    def read(self, path: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Return the bytes of each range."""
        found = self._objects.get(check_path(path))
        if found is None:
            raise ObjectMissingError(path)
        for start, end in ranges:
            if not 0 <= start <= end:
                raise AssertionError(f"a range runs forwards, got {start} to {end}")
            if end > found.facts.size:
                raise CorruptError("object is shorter", path=path, size=found.facts.size, end=end)
        return [found.body[start:end] for start, end in ranges]

    def read_many(self, wanted: Sequence[ObjectRanges]) -> list[list[bytes]]:
        """Return the bytes of each range of several objects."""
        return [self.read(path, ranges) for path, ranges in wanted]

    def list(self, prefix: str, *, below: str | None = None) -> Iterator[str]:
        """Yield paths with the prefix, ascending."""
        yield from sorted(
            p for p in self._objects if p.startswith(prefix) and (below is None or p < below)
        )

    def delete(self, paths: Iterable[str]) -> None:
        """Delete objects."""
        for path in paths:
            self._objects.pop(check_path(path), None)

    def abort_unfinished(self, *, older_than_seconds: float) -> int:
        """Remove what was begun that long ago and never finished."""
        end = self._clock.now() - older_than_seconds * MICROS_PER_SECOND
        old = [writer for writer in self._unfinished.values() if writer.begun <= end]
        for writer in old:
            writer.abort()
        return len(old)

    def _put(self, writer: MemoryObjectWriter, object_: _Object) -> None:
        if self._unfinished.pop(id(writer), None) is None:
            raise UnavailableError("the unfinished object was removed", path=object_.facts.path)
        if object_.facts.path in self._objects:
            raise ObjectExistsError(object_.facts.path)
        self._objects[object_.facts.path] = object_

    def _forget(self, writer: MemoryObjectWriter) -> None:
        self._unfinished.pop(id(writer), None)
