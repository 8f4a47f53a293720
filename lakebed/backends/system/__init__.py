"""The real clock and real chance: the only place that touches them."""

from lakebed.backends.system.chance import system_random
from lakebed.backends.system.clock import SystemClock

__all__ = ["SystemClock", "system_random"]
