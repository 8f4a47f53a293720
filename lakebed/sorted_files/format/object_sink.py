"""Bytes on their way into an object, counted and checksummed while they pass."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import anycrc

from lakebed.errors import (
    CorruptError,
    DeniedError,
    ObjectExistsError,
    UnavailableError,
    UnknownOutcomeError,
)
from lakebed.ports.object_store import ObjectFacts, ObjectStore, ObjectWriter
from lakebed.sorted_files.format.file_notes import BLOCK_BYTES, block_checksum

_CRC64 = anycrc.Model("CRC64-NVME")


class ObjectSink:
    """Passes bytes on to an object's writer as they come; the tail as one piece. has_blocks:
    whether blocks get checksums, which the notes of a sorted file have."""

    def __init__(self, writer: ObjectWriter, *, has_blocks: bool = True) -> None:
        self._writer = writer
        self._has_blocks = has_blocks
        self._tail: bytearray | None = None
        self._blocks: list[int] = []
        self._block_bytes = 0
        """Of the last block, which may grow until it is full."""
        self.size = 0
        self.checksum: int = _CRC64.calc(b"")

    def write(self, pieces: Sequence[bytes | memoryview]) -> None:
        """Take bytes, piece behind piece."""
        for piece in pieces:
            data = memoryview(piece)
            self.size += len(data)
            if self._tail is not None:
                self._tail += data
            else:
                if self._has_blocks:
                    self._add_to_blocks(data)
                self._send(data)

    def begin_tail(self) -> tuple[int, ...]:
        """Say that the tail begins here. Returns the checksums of the blocks before it."""
        if not self._has_blocks:
            raise AssertionError("blocks have checksums")
        self._tail = bytearray()
        return tuple(self._blocks)

    def end_tail(self) -> int:
        """Send the tail. Returns its CRC-32."""
        assert self._tail is not None, "the tail began"
        self._send(memoryview(self._tail))
        return zlib.crc32(self._tail)

    def _add_to_blocks(self, data: memoryview) -> None:
        if self._block_bytes:
            size = min(BLOCK_BYTES - self._block_bytes, len(data))
            self._blocks[-1] = block_checksum(data[:size], self._blocks[-1])
            self._block_bytes = (self._block_bytes + size) % BLOCK_BYTES
            data = data[size:]
        for at in range(0, len(data), BLOCK_BYTES):
            block = data[at : at + BLOCK_BYTES]
            self._blocks.append(block_checksum(block))
            self._block_bytes = len(block) % BLOCK_BYTES

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
        UnavailableError, StorageFullError, DeniedError: nothing became visible.
    """
    try:
        facts = writer.finish()
    except (ObjectExistsError, UnknownOutcomeError) as error:
        try:
            found = objects.look(path)
        except (UnavailableError, DeniedError) as unseen:
            raise UnknownOutcomeError("a write's outcome is unknown", path=path) from unseen
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
