"""The door to time."""

from __future__ import annotations

from typing import Protocol

from lakebed.model.names import Micros


class Clock(Protocol):
    """Time as one machine sees it. It may be wrong: clocks decide when, never whether."""

    def now(self) -> Micros:
        """Return the wall clock."""
        ...

    def monotonic(self) -> float:
        """Return seconds from an unknown start, never backwards."""
        ...

    def sleep(self, seconds: float) -> None:
        """Return after so many seconds."""
        ...
