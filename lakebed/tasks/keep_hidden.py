"""Keeps a message out of sight for as long as its job runs, however long that is."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from lakebed.errors import LakebedError
from lakebed.observe.usage import carried
from lakebed.ports.job_queue import JobQueue

EXTENSIONS_PER_PERIOD = 3
"""Two extensions may be lost before the message comes back."""


@contextmanager
def keep_hidden(queue: JobQueue, receipt: str, *, hidden_seconds: float) -> Iterator[None]:
    """Extend the time of a message in hand from a thread until the `with` ends."""
    stop = threading.Event()

    def extend() -> None:
        while not stop.wait(hidden_seconds / EXTENSIONS_PER_PERIOD):
            try:
                queue.extend(receipt, hidden_seconds=hidden_seconds)
            except LakebedError:
                continue  # the next extension is near; a message that comes back does no harm

    thread = threading.Thread(target=carried(extend), name="keep-hidden", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
