"""A clock that runs sixty times as fast, the same in all processes of a test.

The sweep raises the write floor to entries whose times are known to a minute: at this pace floors
rise, jobs are fenced and objects swept while a test of some seconds runs.
"""

import time

from lakebed.model.names import Micros
from lakebed.ports.clock import Uptime

PACE = 60


class FastClock:
    """started: seconds since 1970 at which it was right."""

    def __init__(self, started: float) -> None:
        self._started = started
        self.ahead_seconds = 0.0

    def now(self) -> Micros:
        passed = time.time() - self._started
        return Micros(round((self._started + passed * PACE + self.ahead_seconds) * 1e6))

    def monotonic(self) -> float:
        return time.monotonic()

    def uptime(self) -> Uptime:
        """Return that of a machine which goes as fast as its clock. A lie does not change it."""
        return Uptime("all of a test", Micros(round(time.monotonic() * PACE * 1e6)))

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)
