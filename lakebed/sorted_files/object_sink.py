"""Bytes on their way into an object, counted and checksummed while they pass."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

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
    """Passes bytes on to an object's writer; only whole blocks, until the tail begins."""

    def __init__(self, writer: ObjectWriter) -> None:
        self._writer = writer
        self._pending = bytearray()
        self._tail: bytearray | None = None
        self.size = 0
        self.checksum: int = _CRC64.calc(b"")
        self.blocks: list[int] = []

    def write(self, pieces: Sequence[bytes | memoryview]) -> None:
        """Take bytes, piece behind piece."""
        data = memoryview(b"".join(pieces))
        self.size += len(data)
        if self._tail is not None:
            self._tail += data
            return
        if self._pending:  # filled up to a block, so that what follows needs no copy
            room = BLOCK_BYTES - len(self._pending)
            self._pending += data[:room]
            data = data[room:]
            if len(self._pending) < BLOCK_BYTES:
                return
            self._pass_on(memoryview(self._pending))
        whole = len(data) // BLOCK_BYTES * BLOCK_BYTES
        self._pass_on(data[:whole])
        self._pending = bytearray(data[whole:])

    def begin_tail(self) -> int:
        """Say that the tail begins here. Returns its offset."""
        self._pass_on(memoryview(self._pending))
        self._tail = bytearray()
        return self.size

    def end_tail(self) -> int:
        """Send the tail. Returns its CRC-32."""
        assert self._tail is not None, "the tail began"
        self._send(memoryview(self._tail))
        return zlib.crc32(self._tail)

    def _pass_on(self, data: memoryview) -> None:
        if len(data):
            self.blocks += [
                block_checksum(data[at : at + BLOCK_BYTES])
                for at in range(0, len(data), BLOCK_BYTES)
            ]
            self._send(data)

    def _send(self, data: memoryview) -> None:
        self.checksum = _CRC64.calc(data, self.checksum)
        self._writer.write(data)


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
