"""The door to objects. Objects are put if absent, never overwritten (protocol H19); listings may
lag."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

import msgspec

ObjectRanges = tuple[str, Sequence[tuple[int, int]]]
"""A path, and what of the object is wanted: the bytes `[start, end)` of each range."""


class ObjectFacts(msgspec.Struct, frozen=True):
    """The facts that a store gives about an object.

    checksum: CRC-64/NVME of its bytes.
    """

    path: str
    size: int
    checksum: int


class ObjectWriter(Protocol):
    """An object on its way. Nothing is visible before `finish`; one never finished leaves nothing
    that listings show."""

    def write(self, data: bytes | memoryview) -> int:
        """Add bytes. Returns their number.

        Raises:
            ObjectTooLargeError: the store keeps no object of this size.
            StorageFullError: the disk is full.
            UnavailableError: the store is busy.
        """
        ...

    def finish(self) -> ObjectFacts:
        """Make the object visible, all of it, durably.

        Raises:
            ObjectExistsError: the path is taken, perhaps by an earlier try of this very write.
            UnavailableError: nothing became visible; write it again.
            UnknownOutcomeError: it may be visible, now or later: `look` at it.
        """
        ...

    def abort(self) -> None:
        """Forget what was written. Safe to call again, and after `finish` it does nothing."""
        ...


class ObjectReader(Protocol):
    """Objects, for those who only read them."""

    def read(self, path: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Return the bytes `[start, end)` of each range.

        Raises:
            ObjectMissingError: there is no such object.
            CorruptError: it is shorter than a range.
            UnavailableError: the store is busy.
        """
        ...

    def read_many(self, wanted: Sequence[ObjectRanges]) -> list[list[bytes]]:
        """Return, for each of several objects, the bytes of its ranges. All are asked for at the
        same time, as far as the store allows it: it takes as long as the slowest.

        Raises:
            As `read`, for any of the objects.
        """
        ...


class ObjectStore(ObjectReader, Protocol):
    """Objects by path. Every implementation passes `tests/contracts/test_object_store.py`."""

    def create(self, path: str) -> ObjectWriter:
        """Begin an object."""
        ...

    def look(self, path: str) -> ObjectFacts | None:
        """Return what is at `path`, or None. Strongly consistent.

        Raises:
            UnavailableError: the store is busy.
        """
        ...

    def size_of(self, path: str) -> int | None:
        """Return how many bytes are at `path`, or None. Strongly consistent, and never reads them,
        as `look` may.

        Raises:
            UnavailableError: the store is busy.
        """
        ...

    def list(self, prefix: str, *, below: str | None = None) -> Iterator[str]:
        """Yield paths that begin with `prefix`, ascending, and lie below `below`; page by page.

        It may lag: show what was deleted, or not yet show what was put.
        """
        ...

    def delete(self, paths: Iterable[str]) -> None:
        """Delete objects; one that is missing is no error. It may be repeated.

        Raises:
            UnavailableError, UnknownOutcomeError: some may be deleted, some not: call again.
        """
        ...

    def abort_unfinished(self, *, older_than_seconds: float) -> int:
        """Remove what writers that never finished left behind. Returns how many."""
        ...
