"""The door to a spool: frames of bytes on a local disk, for as long as this process lives.

Nothing in it is needed by any other process, or by the next one: what is spooled can be read again
from where it came.
"""

from __future__ import annotations

from typing import Protocol

import msgspec


class FrameAt(msgspec.Struct, frozen=True):
    """The location of a frame.

    file: number of its file.
    offset: of its first byte there.
    length: of what was appended.
    """

    file: int
    offset: int
    length: int


class FrameSpool(Protocol):
    """Frames, which come out as they went in, or not at all."""

    def size(self) -> int:
        """Return how many bytes lie on the disk."""
        ...

    def size_of(self, length: int) -> int:
        """Return how many bytes a frame takes. length: of what is appended."""
        ...

    def append(self, body: bytes) -> FrameAt:
        """Keep some bytes behind all others. Returns where they lie.

        Raises:
            StorageFullError: the disk is full; they are not kept.
            DeniedError, UnavailableError: the file system refuses; they are not kept.
        """
        ...

    def read(self, at: FrameAt) -> bytes:
        """Return the bytes of a frame that was not dropped.

        Raises:
            CorruptError: they are not what was appended.
            DeniedError, UnavailableError: the file system refuses.
        """
        ...

    def drop(self, at: FrameAt) -> None:
        """Let go of a frame. Its room is free when all frames of its file were let go."""
        ...

    def clear(self) -> None:
        """Let go of all frames. Never raises."""
        ...

    def close(self) -> None:
        """Let go of all frames, and of what the spool itself holds. Closing twice does no harm."""
        ...
