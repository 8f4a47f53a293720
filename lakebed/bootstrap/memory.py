"""Says how much memory one process may use: what its user allows."""

from __future__ import annotations

from typing import NamedTuple

from lakebed.errors import InvalidError

MEMORY_BYTES_MIN, MEMORY_BYTES_MAX = 1 << 20, 1 << 40


class Memory(NamedTuple):
    """The memory limits of one process. None: the usual.

    cache_bytes: of what is kept of files for lookups.
    merge_bytes: of a compaction's buffers, kept or refused.
    states_bytes: of states of tables that are kept on its disk; None: as many as are open.
    work_bytes: about, of one merge, or of one sorter and its files; lookups' too, if `cache_bytes`
        says nothing.
    """

    cache_bytes: int | None = None
    merge_bytes: int | None = None
    work_bytes: int | None = None
    states_bytes: int | None = None

    def check(self) -> None:
        """Raise InvalidError for nothing to keep rows in, or more than machines have."""
        for name, size in self._asdict().items():
            allowed = type(size) is int and MEMORY_BYTES_MIN <= size <= MEMORY_BYTES_MAX
            if size is not None and not allowed:
                hint = f"give {MEMORY_BYTES_MIN} to {MEMORY_BYTES_MAX} bytes, or leave it out"
                raise InvalidError(f"{name} is not a size of memory", got=size, hint=hint)
