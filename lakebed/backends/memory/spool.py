"""A spool in memory, whose disk may be full, away or damaged when a test says so."""

from __future__ import annotations

from lakebed.errors import CorruptError, LakebedError
from lakebed.ports.spool import FrameAt


class MemorySpool:
    """Frames in memory.

    refusal: raised by each append while it is set.
    most: that was kept at once, in bytes.
    """

    def __init__(self) -> None:
        self._frames: dict[int, bytes] = {}
        self._next = 0
        self._damaged: set[int] = set()
        self.refusal: LakebedError | None = None
        self.most = 0

    def size(self) -> int:
        """Return how many bytes are kept."""
        return sum(map(len, self._frames.values()))

    def size_of(self, length: int) -> int:
        """Return how many bytes a frame takes."""
        return length

    def append(self, body: bytes) -> FrameAt:
        """Keep some bytes: see `FrameSpool`."""
        if self.refusal is not None:
            raise self.refusal
        at = FrameAt(self._next, 0, len(body))
        self._frames[self._next] = body
        self._next += 1
        self.most = max(self.most, self.size())
        return at

    def read(self, at: FrameAt) -> bytes:
        """Return a frame: see `FrameSpool`."""
        if at.file in self._damaged or at.file not in self._frames:
            raise CorruptError("spilled records are damaged", file=at.file)
        return self._frames[at.file]

    def damage(self) -> None:
        """Let the frames that are kept now be damaged."""
        self._damaged |= self._frames.keys()

    def drop(self, at: FrameAt) -> None:
        """Let go of a frame."""
        del self._frames[at.file]

    def clear(self) -> None:
        """Let go of all frames."""
        self._frames.clear()

    def close(self) -> None:
        """Let go of all frames."""
        self.clear()
