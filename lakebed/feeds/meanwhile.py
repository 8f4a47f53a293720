"""Does something again and again, from a thread, while a longer work runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def meanwhile(act: Callable[[], None], *, every_seconds: float) -> Iterator[None]:
    """Act each so many seconds until the `with` ends. `act` must not raise."""
    ended = threading.Event()

    def act_again() -> None:
        while not ended.wait(every_seconds):
            act()

    thread = threading.Thread(target=act_again, name="feed-beats", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
