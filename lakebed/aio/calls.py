"""Calls that run in threads of a pool while an event loop goes on."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Generic, TypeVar

from lakebed.errors import InvalidError

T = TypeVar("T")
THREADS, THREADS_MAX = 8, 256


class Stop:
    """Tells a call whether it is to stop: as its caller says, or as its task was cancelled."""

    def __init__(self, should_stop: Callable[[], bool]) -> None:
        self._should_stop = should_stop
        self.is_cancelled = False

    def __call__(self) -> bool:
        return self.is_cancelled or self._should_stop()


class Calls:
    """A pool of threads. threads: at most so many calls run at once; others wait for their turn.

    Raises:
        InvalidError: not a number of threads.
    """

    def __init__(self, threads: int) -> None:
        if type(threads) is not int or not 0 < threads <= THREADS_MAX:
            hint = f"give 1 to {THREADS_MAX}"
            raise InvalidError("not a number of threads", threads=threads, hint=hint)
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="lakebed-aio")
        self._is_closed = False

    def begin(self, call: Callable[[], T]) -> Future[T]:
        """Let a call run when a thread is free. Raises: InvalidError: the lake was closed."""
        if self._is_closed:
            raise InvalidError("the lake was closed", hint="connect to it again")
        return self._pool.submit(contextvars.copy_context().run, call)

    async def run(self, call: Callable[[], T], stop: Stop | None = None) -> T:
        """Return what a call returns. When the task that waits for it is cancelled, a call that has
        not begun never does, and one that has `stop` is told."""
        try:
            return await asyncio.wrap_future(self.begin(call))
        except asyncio.CancelledError:
            if stop is not None:
                stop.is_cancelled = True
            raise

    async def finish(self, call: Callable[[], T]) -> T:
        """Run the last call, and let the threads go when they are done."""
        try:
            return await self.run(call)
        finally:
            self.close()

    def close(self) -> None:
        """Begin no more calls."""
        self._is_closed = True
        self._pool.shutdown(wait=False)


class Later(Generic[T]):
    """A value that is read when it is awaited."""

    def __init__(self, calls: Calls, call: Callable[[], T]) -> None:
        self._calls = calls
        self._call = call

    def __await__(self) -> Generator[Any, None, T]:
        return self._calls.run(self._call).__await__()


class Twin:
    """Has what is called, and where its calls run."""

    def __init__(self, calls: Calls, sync: Any) -> None:
        self._calls = calls
        self._sync = sync
