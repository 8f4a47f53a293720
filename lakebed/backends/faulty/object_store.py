"""Objects whose puts and deletes are lost, late, unanswered or doubled, and listings that lag."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

import anycrc

from lakebed.backends.faulty.crash_plan import CrashPlan
from lakebed.backends.faulty.faults import Fault, Faults
from lakebed.errors import ObjectExistsError, UnavailableError, UnknownOutcomeError
from lakebed.model.paths import check_path
from lakebed.ports.object_store import ObjectFacts, ObjectRanges, ObjectStore

_CRC64 = anycrc.Model("CRC64-NVME")


class FaultyObjectWriter:
    """An object on its way: all of it is sent when it is finished."""

    def __init__(self, store: FaultyObjectStore, path: str) -> None:
        self._store = store
        self._path = path
        self._parts: list[bytes] = []
        self._ended = False

    def write(self, data: bytes | memoryview) -> int:
        """Add bytes."""
        assert not self._ended, "the object is finished or given up"
        self._parts.append(bytes(data))
        return len(self._parts[-1])

    def finish(self) -> ObjectFacts:
        """Make the object visible, perhaps."""
        assert not self._ended, "the object is finished or given up"
        self._ended = True
        return self._store._finish(self._path, b"".join(self._parts))  # noqa: SLF001  two halves

    def abort(self) -> None:
        """Forget what was written."""
        self._ended = True
        self._parts = []


class FaultyObjectStore:
    """Objects as one worker meets them. crashes: that worker's."""

    def __init__(
        self, objects: ObjectStore, faults: Faults, crashes: CrashPlan | None = None
    ) -> None:
        self._objects = objects
        self._faults = faults
        self._crashes = crashes or CrashPlan()

    def create(self, path: str) -> FaultyObjectWriter:
        """Begin an object."""
        self._crashes.check_alive()
        return FaultyObjectWriter(self, check_path(path))

    def look(self, path: str) -> ObjectFacts | None:
        """Return what is at `path`."""
        self._before_read(Fault.READ_THROTTLED)
        return self._objects.look(path)

    def size_of(self, path: str) -> int | None:
        """Return how many bytes are at `path`."""
        self._before_read(Fault.READ_THROTTLED)
        return self._objects.size_of(path)

    def read(self, path: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Return the bytes of each range."""
        self._before_read(Fault.READ_THROTTLED)
        return self._objects.read(path, ranges)

    def read_many(self, wanted: Sequence[ObjectRanges]) -> list[list[bytes]]:
        """Return the bytes of each range, unless the request for one of the objects fails."""
        for _ in wanted:
            self._before_read(Fault.READ_THROTTLED)
        return self._objects.read_many(wanted)

    def list(self, prefix: str, *, below: str | None = None) -> Iterator[str]:
        """Yield paths, some that are gone among them, some that are new left out."""
        self._before_read(Fault.LIST_THROTTLED)
        hidden = {p for p in self._faults.recent_puts if self._faults.choose(Fault.LIST_HIDES)}
        shown = {
            path
            for path in self._faults.recent_deletes
            if path.startswith(prefix)
            and (below is None or path < below)
            and self._faults.choose(Fault.LIST_SHOWS_DELETED)
        }
        last = None
        for path in heapq.merge(self._objects.list(prefix, below=below), sorted(shown)):
            self._crashes.check_alive()
            if path != last and path not in hidden:
                yield path
            last = path

    def delete(self, paths: Iterable[str]) -> None:
        """Delete objects, perhaps not all, perhaps later."""
        self._crashes.check_alive()
        unanswered = None
        for path in paths:
            self._faults.pass_door()
            with self._crashes.effect("object delete"):
                match self._faults.choose(
                    Fault.DELETE_THROTTLED, Fault.DELETE_LATE, Fault.DELETE_UNANSWERED
                ):
                    case None:
                        self._delete(path)
                    case Fault.DELETE_LATE:
                        self._delete_later(path)
                        unanswered = path
                    case Fault.DELETE_UNANSWERED:
                        self._delete(path)
                        unanswered = path
                    case _:
                        raise UnavailableError("delete throttled", path=path)
        if unanswered is not None:
            raise UnknownOutcomeError("no answer", path=unanswered)

    def abort_unfinished(self, *, older_than_seconds: float) -> int:
        """Remove what writers that never finished left behind."""
        self._crashes.check_alive()
        return self._objects.abort_unfinished(older_than_seconds=older_than_seconds)

    def _before_read(self, throttled: Fault) -> None:
        self._crashes.check_alive()
        self._faults.pass_door()
        if self._faults.choose(throttled):
            raise UnavailableError(throttled.value)

    def _finish(self, path: str, data: bytes) -> ObjectFacts:
        self._crashes.check_alive()
        self._faults.pass_door()
        with self._crashes.effect("object put"):
            match self._faults.choose(
                Fault.PUT_THROTTLED,
                Fault.PUT_LOST,
                Fault.PUT_LATE,
                Fault.PUT_UNANSWERED,
                Fault.PUT_OWN_TRY,
                Fault.PUT_TWICE,
            ):
                case None:
                    return self._put(path, data)
                case Fault.PUT_TWICE:
                    facts = self._put(path, data)
                    self._put_later(path, data)
                    return facts
                case Fault.PUT_THROTTLED:
                    raise UnavailableError("put throttled", path=path)
                case Fault.PUT_LATE:
                    self._put_later(path, data)
                case Fault.PUT_UNANSWERED:
                    with suppress(ObjectExistsError):  # that answer is lost too
                        self._put(path, data)
                case Fault.PUT_OWN_TRY:
                    self._put(path, data)
                    raise ObjectExistsError(path)
                case _:
                    pass
        raise UnknownOutcomeError("no answer", path=path)

    def _put_later(self, path: str, data: bytes) -> None:
        def deliver() -> None:
            self._put(path, data)

        self._faults.later(deliver)

    def _put(self, path: str, data: bytes) -> ObjectFacts:
        self._faults.note_put(path, _CRC64.calc(data))
        writer = self._objects.create(path)
        try:
            writer.write(data)
            return writer.finish()
        finally:
            writer.abort()

    def _delete_later(self, path: str) -> None:
        self._faults.later(lambda: self._delete(path))

    def _delete(self, path: str) -> None:
        self._objects.delete([path])
        self._faults.recent_deletes.append(path)
