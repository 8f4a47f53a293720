"""Several requests on their way at the same time: most of a request is waiting."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait

from lakebed.observe.usage import carried

AT_ONCE_MAX = 8


class AtOnce:
    """Threads for requests, begun when first wanted and kept: a thread takes longer to begin than a
    request to be written. Safe to share among threads, but not to call from a call of its own.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._threads: ThreadPoolExecutor | None = None

    def run(self, calls: Sequence[Callable[[], None]]) -> None:
        """Call all, some at the same time, in no order. Returns when all have ended.

        Raises:
            What one of them raised; the others were called all the same.
        """
        if len(calls) == 1:
            calls[0]()
            return
        with self._lock:
            if self._threads is None:
                self._threads = ThreadPoolExecutor(AT_ONCE_MAX)
            done = [self._threads.submit(carried(call)) for call in calls]
        wait(done)
        for one in done:
            one.result()

    def close(self) -> None:
        """End the threads; the next use begins them again."""
        with self._lock:
            if self._threads is not None:
                self._threads.shutdown()
                self._threads = None
