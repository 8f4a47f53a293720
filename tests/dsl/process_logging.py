"""Logging of this process, which handlers and tasks set up for all of it."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def logging_restored() -> Iterator[None]:
    """Put handlers and levels back when the block ends."""
    root, ours = logging.getLogger(), logging.getLogger("lakebed")
    before = root.handlers[:], root.level, ours.level
    try:
        yield
    finally:
        root.handlers[:], root.level = before[0], before[1]
        ours.setLevel(before[2])
