"""The cloud's time: this machine's, and as far ahead of it as a command moved it."""

from __future__ import annotations

from lakebed.model.names import MICROS_PER_SECOND, Micros
from lakebed.ports.clock import Clock, Uptime


class CloudClock:
    """A clock that goes on with this machine's, and jumps ahead. Waits are real."""

    def __init__(self, real: Clock) -> None:
        self._real = real
        self._ahead = 0

    @property
    def ahead_seconds(self) -> float:
        """Return how many seconds the clock is ahead of this machine's."""
        return self._ahead / MICROS_PER_SECOND

    def now(self) -> Micros:
        """Return the cloud's wall clock."""
        return Micros(self._real.now() + self._ahead)

    def seconds(self) -> float:
        """Return the cloud's wall clock in seconds since 1970."""
        return self.now() / MICROS_PER_SECOND

    def monotonic(self) -> float:
        """Return this machine's seconds from an unknown start."""
        return self._real.monotonic()

    def uptime(self) -> Uptime:
        """Return how long this machine has been up, and as far ahead: time has passed there."""
        machine, micros = self._real.uptime()
        return Uptime(machine, Micros(micros + self._ahead))

    def sleep(self, seconds: float) -> None:
        """Return after so many real seconds."""
        self._real.sleep(seconds)

    def jump_to(self, seconds: float) -> None:
        """Let it be that time now; never an earlier one than it is."""
        self._ahead += max(0, round(seconds * MICROS_PER_SECOND) - self.now())
