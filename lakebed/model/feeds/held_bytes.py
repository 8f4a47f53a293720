"""Counts how many bytes of records all pipelines of a process hold, together."""

from __future__ import annotations

MIB = 1 << 20
MEMORY_MIB, MEMORY_MIB_MIN = 512, 256
BASE_MIB = 192
"""Memory of a worker that holds no records, in MiB."""
TIMES_HELD = 5
"""A round of the greatest size is in memory as records, as rows, as sorted rows and as pages of a
file, while the others hold what they have read."""
TIMES_WAITING = 2
"""A round that waits to be staged is in memory as records and as rows."""


class HeldBytes:
    """Bytes that pipelines of one process have read and not committed, and how many they may have.

    bytes_max: of all together; 0: what fits into the usual memory. One read may go beyond it.
    """

    def __init__(self, bytes_max: int = 0) -> None:
        self.bytes_max = bytes_max or _fitting(MEMORY_MIB)
        self._held: dict[object, int] = {}

    def fit_into(self, memory_mib: int) -> None:
        """Hold only so many that the process stays below so much memory."""
        self.bytes_max = _fitting(memory_mib)

    @property
    def room(self) -> int:
        """Return how many more bytes may be read."""
        return max(0, self.bytes_max - sum(self._held.values()))

    @property
    def merged_max(self) -> int:
        """Return how many bytes of files may be merged while a round waits, the largest too: a
        merge takes up to `TIMES_HELD` times as much memory."""
        return self.bytes_max * (TIMES_HELD - TIMES_WAITING) // TIMES_HELD

    def hold(self, holder: object, size: int) -> None:
        """Say what one pipeline holds now. holder: tells it apart."""
        if size:
            self._held[holder] = size
        else:
            self._held.pop(holder, None)

    def is_to_commit(self, holder: object) -> bool:
        """Return whether there is no room, and a holder holds the most: its commit makes the most
        room by one entry."""
        return not self.room and self._held.get(holder, 0) == max(self._held.values(), default=-1)


def _fitting(memory_mib: int) -> int:
    return (memory_mib - BASE_MIB) * MIB // TIMES_HELD
