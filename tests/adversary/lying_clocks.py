"""How the clock of one process is made wrong: by libfaketime, where it is installed."""

import os
import threading
import time
from collections.abc import Mapping
from pathlib import Path

FAKETIME = "LAKEBED_LIBFAKETIME"
"""Names the library where it is not installed as Debian does it."""
PLACES = ("/usr/lib/*/faketime", "/usr/lib/faketime", "/usr/local/lib/faketime")
NAME = "libfaketimeMT.so.1"
"""The one for programs with threads."""


def libfaketime() -> Path | None:
    """Return the library that lies about time; None: it is not installed."""
    if named := os.environ.get(FAKETIME):
        return Path(named)
    found = (path for place in PLACES for path in Path("/").glob(f"{place[1:]}/{NAME}"))
    return next(found, None)


def ahead(library: Path, seconds: float) -> Mapping[str, str]:
    """Return the variables of a process whose wall clock is to be ahead by so much. Its monotonic
    clock stays right, as it does when an operator sets the time."""
    return {
        "LD_PRELOAD": str(library),
        "FAKETIME": f"{seconds:+f}s",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }


def sleep_in_spite_of_lies() -> None:
    """Let this process sleep although it is lied to. libfaketime 0.9.10 makes `clock_nanosleep`
    fail (EINVAL) where the monotonic clock stays right; a semaphore waits as it should."""
    if "FAKETIME" in os.environ:
        time.sleep = _waits


def _waits(seconds: float) -> None:
    threading.Event().wait(seconds)
