"""Several requests on their way at the same time: most of a request is waiting."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

AT_ONCE_MAX = 8


def at_once(calls: Sequence[Callable[[], None]]) -> None:
    """Call all, some at the same time, in no order. Returns when all have ended.

    Raises:
        What one of them raised; the others were called all the same.
    """
    if len(calls) == 1:
        calls[0]()
    elif calls:
        with ThreadPoolExecutor(min(len(calls), AT_ONCE_MAX)) as threads:
            done = [threads.submit(call) for call in calls]
        for one in done:
            one.result()
