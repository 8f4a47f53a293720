"""Chance that nobody can foretell or repeat: for ids that are unique across machines."""

from __future__ import annotations

import random


def system_random() -> random.Random:
    """Return a source of chance fed by the operating system; it has no seed and no state."""
    return random.SystemRandom()
