"""This machine's clock."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

from lakebed.model.names import Micros
from lakebed.ports.clock import Uptime

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class SystemClock:
    """Time as this machine sees it."""

    def now(self) -> Micros:
        """Return the wall clock."""
        return Micros(time.time_ns() // 1_000)

    def monotonic(self) -> float:
        """Return seconds from an unknown start, never backwards."""
        return time.monotonic()

    def uptime(self) -> Uptime:
        """Return how long this machine has been up, also asleep. Where it does not tell when it was
        started, each process is a machine of its own."""
        machine, shared = _machine()
        nanos = time.clock_gettime_ns(time.CLOCK_BOOTTIME) if shared else time.monotonic_ns()
        return Uptime(machine, Micros(nanos // 1_000))

    def sleep(self, seconds: float) -> None:
        """Return after so many seconds; at once when there are none."""
        if seconds > 0:
            time.sleep(seconds)


@cache
def _machine() -> tuple[str, bool]:
    """Return a name of this machine since it was started, and whether other processes have the
    same."""
    with suppress(OSError, UnicodeDecodeError):
        found = _BOOT_ID.read_text("ascii").strip().replace("-", "")
        if found:
            return found, True
    return os.urandom(16).hex(), False
