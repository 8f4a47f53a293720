"""The real clock and real rng: the only place that touches them."""

from lakebed.backends.system.clock import SystemClock
from lakebed.backends.system.random_source import system_random

__all__ = ["SystemClock", "system_random"]
