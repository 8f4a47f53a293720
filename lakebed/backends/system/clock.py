"""This machine's clock."""

from __future__ import annotations

import time

from lakebed.model.names import Micros


class SystemClock:
    """Time as this machine sees it."""

    def now(self) -> Micros:
        """Return the wall clock."""
        return Micros(time.time_ns() // 1_000)

    def monotonic(self) -> float:
        """Return seconds from an unknown start, never backwards."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Return after so many seconds; at once when there are none."""
        if seconds > 0:
            time.sleep(seconds)
