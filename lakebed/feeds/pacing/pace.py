"""Bounds how fast a process may read: a token bucket that holds one second's records."""

from __future__ import annotations


class Pace:
    """Says whether more may be read. An answer of a source is taken whole, and paid for afterwards.

    per_second: records; 0: any number. now: seconds of a monotonic clock.
    """

    def __init__(self, per_second: int, now: float) -> None:
        self._per_second = per_second
        self._left = float(per_second)
        self._at = now

    def may_read(self, now: float) -> bool:
        """Return whether something may be read now."""
        if not self._per_second:
            return True
        added = (now - self._at) * self._per_second
        self._left, self._at = min(float(self._per_second), self._left + added), now
        return self._left > 0

    def read(self, records: int) -> None:
        """Note what was read."""
        self._left -= records
