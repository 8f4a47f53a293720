"""Bounds the share of its time that a process spends on one kind of work beside its feeds."""

from __future__ import annotations

QUARTER = 0.25


class TimeShare:
    """Lets work be done again when enough time has passed since it was done last.

    share: of all time that the work may take, if it is asked for all the time. Times are seconds of
        one monotonic clock.
    """

    def __init__(self, share: float = QUARTER) -> None:
        self._rests = 1 / share - 1
        self._free_at: float | None = None

    def is_free(self, now: float) -> bool:
        """Return whether the work may be done now."""
        return self._free_at is None or now >= self._free_at

    def spent(self, begun: float, ended: float) -> None:
        """Say how long the work took: for a share of a quarter it rests three times as long."""
        self._free_at = ended + self._rests * (ended - begun)
