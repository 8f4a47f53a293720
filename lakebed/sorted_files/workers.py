"""Threads for one merge: they read ahead, merge and encode; the caller's thread hands out and
writes.

Decoding, merging, encoding and checksums run without the interpreter's lock. No task waits for
another, so none waits for ever.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import ParamSpec, Self, TypeVar

ItemT = TypeVar("ItemT")
P = ParamSpec("P")


class Workers:
    """So many threads, to be closed by `with`; one: none besides the caller's, done at once."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._pool: ThreadPoolExecutor | None = None

    def __enter__(self) -> Self:
        if self.count > 1:
            self._pool = ThreadPoolExecutor(self.count, thread_name_prefix="lakebed-merge")
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def start(self, task: Callable[P, ItemT], *given: P.args, **named: P.kwargs) -> Future[ItemT]:
        """Begin a task; with one worker it is done before this returns."""
        if self._pool is not None:
            return self._pool.submit(task, *given, **named)
        done: Future[ItemT] = Future()
        done.set_result(task(*given, **named))
        return done

    def ahead(self, items: Iterator[ItemT]) -> Iterator[ItemT]:
        """Yield the same items; while one is used the next is made."""
        if self._pool is None:
            yield from items
            return
        coming = self.start(next, items, None)
        while (item := coming.result()) is not None:
            coming = self.start(next, items, None)
            yield item


ALONE = Workers(1)
