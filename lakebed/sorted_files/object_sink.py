"""Bytes on their way into an object, counted and checksummed while they pass."""

from __future__ import annotations

import zlib

import anycrc

from lakebed.errors import (
    CorruptError,
    ObjectExistsError,
    UnavailableError,
    UnknownOutcomeError,
)
from lakebed.ports.object_store import ObjectFacts, ObjectStore, ObjectWriter
from lakebed.sorted_files.file_notes import BLOCK_BYTES, block_checksum

_CRC64 = anycrc.Model("CRC64-NVME")


class ObjectSink:
    """A file object that Arrow writes to. What the object's writer raises is kept in `problem`."""

    closed = False

    def __init__(self, writer: ObjectWriter) -> None:
        self._writer = writer
        self._pending = b""
        self._tail: bytearray | None = None
        self.size = 0
        self.checksum: int = _CRC64.calc(b"")
        self.blocks: list[int] = []
        self.problem: Exception | None = None
        self._abandoned = False

    def abandon(self) -> None:
        """Send nothing more: Arrow's writer closes itself, with a footer, when it is let go."""
        self._abandoned = True

    def write(self, data: bytes) -> int:
        self.size += len(data)
        if self._abandoned:
            return len(data)
        if self._tail is not None:
            self._tail += data
        else:
            self._pending += data
            self._pass_on(len(self._pending) // BLOCK_BYTES * BLOCK_BYTES)
        return len(data)

    def begin_tail(self) -> int:
        """Say that the tail begins here. Returns its offset."""
        self._pass_on(len(self._pending))
        self._tail = bytearray()
        return self.size

    def end_tail(self) -> int:
        """Send the tail. Returns its CRC-32."""
        assert self._tail is not None, "the tail began"
        self._send(memoryview(self._tail))
        return zlib.crc32(self._tail)

    def _pass_on(self, size: int) -> None:
        if not size:
            return
        view = memoryview(self._pending)
        self._pending = bytes(view[size:])
        whole = view[:size]
        self.blocks += [
            block_checksum(whole[at : at + BLOCK_BYTES]) for at in range(0, size, BLOCK_BYTES)
        ]
        self._send(whole)

    def _send(self, data: memoryview) -> None:
        self.checksum = _CRC64.calc(data, self.checksum)
        try:
            self._writer.write(data)
        except Exception as problem:
            self.problem = problem
            raise

    def tell(self) -> int:
        return self.size

    def flush(self) -> None:
        """Do nothing: only whole blocks are passed on."""

    def close(self) -> None:
        """Do nothing: the object is finished by `finish_object`."""


def finish_object(
    objects: ObjectStore, writer: ObjectWriter, *, path: str, size: int, checksum: int
) -> None:
    """Finish an object; where the answer was lost, find out whether it landed (protocol H25).

    Raises:
        ObjectExistsError: another object has the path.
        UnknownOutcomeError: it may be there, now or later.
        CorruptError: the store says it got other bytes.
        UnavailableError, StorageFullError: nothing became visible.
    """
    try:
        facts = writer.finish()
    except (ObjectExistsError, UnknownOutcomeError) as error:
        try:
            found = objects.look(path)
        except UnavailableError as unavailable:
            raise UnknownOutcomeError("a write's outcome is unknown", path=path) from unavailable
        if found is None:
            if isinstance(error, ObjectExistsError):
                raise UnknownOutcomeError("a write's outcome is unknown", path=path) from error
            raise
        if (found.size, found.checksum) != (size, checksum):
            raise ObjectExistsError(path) from error
        facts = found
    if facts != ObjectFacts(path, size, checksum):
        raise CorruptError(
            "the store holds other bytes than were sent",
            path=path,
            size=facts.size,
            wanted_size=size,
        )
