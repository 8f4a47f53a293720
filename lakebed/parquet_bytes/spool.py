"""Memory that kernels write chunks into, used again for the next row group and the next file:
memory that is new costs the system more than kernels take to fill it."""

from __future__ import annotations

from collections import deque

import numpy as np

from lakebed.kernels.toolchain.arrays import address_of
from lakebed.parquet_bytes.varints import Bytes

_BLOCK_BYTES = 4 * 1024 * 1024


class Spool:
    """Memory to write into, piece behind piece, and to be used again."""

    def __init__(self) -> None:
        self._blocks: list[Bytes] = []
        self._block = 0
        self._at = 0

    def room(self, size: int) -> int:
        """Return the address of so many bytes."""
        while self._block < len(self._blocks):
            block = self._blocks[self._block]
            if len(block) - self._at >= size:
                return address_of(block) + self._at
            self._block, self._at = self._block + 1, 0
        self._blocks.append(np.empty(max(size, _BLOCK_BYTES), np.uint8))
        return address_of(self._blocks[-1])

    def keep(self, size: int) -> memoryview:
        """Return what was written where there was room: so many bytes."""
        begin, self._at = self._at, self._at + size
        return self._blocks[self._block].data[begin : self._at]

    def clear(self) -> None:
        """Let everything be written over."""
        self._block = self._at = 0

    @property
    def size(self) -> int:
        """Return how many bytes there are in all."""
        return sum(map(len, self._blocks))


class EncoderMemory:
    """The memory of one encoder. payloads: pages before they are compressed; written: pages."""

    def __init__(self) -> None:
        self.payloads = np.empty(0, np.uint8)
        self.written = Spool()

    @classmethod
    def of_idle(cls) -> EncoderMemory:
        """Return memory that another encoder has done with, or fresh one."""
        try:
            return _IDLE.pop()
        except IndexError:
            return cls()

    def give_back(self) -> None:
        """Let another encoder have it, if it is not much. Nothing in it is needed any more."""
        self.written.clear()
        if self.written.size + len(self.payloads) <= IDLE_BYTES_MAX:
            _IDLE.append(self)


IDLE_MAX = 2
IDLE_BYTES_MAX = 64 * 1024 * 1024
"""Most bytes of each idle buffer that is kept."""
_IDLE: deque[EncoderMemory] = deque(maxlen=IDLE_MAX)
