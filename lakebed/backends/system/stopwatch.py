"""Measures how long this process has lived, and how long it computed."""

from __future__ import annotations

import time


def seconds_so_far() -> tuple[float, float]:
    """Return seconds of life since some moment, and of processor time of all threads."""
    return time.monotonic(), time.process_time()
