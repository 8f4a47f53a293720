"""Randomness that cannot be predicted or repeated: for ids that are unique across machines."""

from __future__ import annotations

import random


def system_random() -> random.Random:
    """Return a source of the operating system's random numbers: without seed or state."""
    return random.SystemRandom()
