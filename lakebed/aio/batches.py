"""Yields the items of a call asynchronously: a thread reads, two items ahead."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

import pyarrow as pa

from lakebed.aio.calls import Calls
from lakebed.errors import InvalidError
from lakebed.sql.interrupts import CURRENT, Interrupts

T = TypeVar("T")
SourceT = TypeVar("SourceT", bound=Iterator[Any])
AHEAD = 2
"""AsyncItems that are read and not yet taken, with the one that is being read."""
INTERRUPT_SECONDS = 0.1
_END = object()


class _Source(Generic[SourceT]):
    """An iterator that threads of a pool use in turn. open_: begins it, when it is first used."""

    def __init__(self, open_: Callable[[], SourceT]) -> None:
        self._open = open_
        self._iterator: SourceT | None = None
        self._lock = threading.Lock()
        self._is_dropped = False
        self._is_over = False
        self._interrupts = Interrupts()

    def next(self) -> object:
        """Return the next item, or `_END`."""
        return self.use(lambda iterator: next(iterator, _END))

    def use(self, act: Callable[[SourceT], T]) -> T:
        """Return what is made of the iterator."""
        CURRENT.set(self._interrupts)  # of this call alone, which has a context of its own
        try:
            with self._lock:
                if self._is_over:
                    raise InvalidError("the read was ended", hint="ask again")
                if self._iterator is None:
                    self._iterator = self._open()
                return act(self._iterator)
        finally:
            if self._is_dropped:  # while it was used
                self.drop()

    def interrupt(self) -> bool:
        """Let nothing be read any more, and end what computes, if it can be ended. Returns at once:
        whether a thread is still at it."""
        self._is_over = True
        self._interrupts.interrupt()
        return self._lock.locked()

    def drop(self) -> None:
        """Let the iterator go, now or when it is used no more: that ends what it reads."""
        self._is_dropped = True
        if self._lock.acquire(blocking=False):
            try:
                self._iterator = None
            finally:
                self._lock.release()


class _Reading(Generic[T]):
    """An iterator that is read ahead of its consumer. Its event loop alone uses it."""

    def __init__(self, calls: Calls, source: _Source[Any]) -> None:
        self._calls = calls
        self._source = source
        self._held: deque[T] = deque()
        self._fetching: asyncio.Future[Any] | None = None
        self._has_ended = False
        self._problem: BaseException | None = None

    async def next(self) -> T:
        """Return the next item. Raises: StopAsyncIteration: that was all; what reading raised."""
        while not self._held:
            if self._problem is not None:
                problem, self._problem = self._problem, None
                raise problem
            if self._has_ended:
                raise StopAsyncIteration
            self._fetch()
            assert self._fetching is not None, "it is being read"
            try:
                await asyncio.wait([self._fetching])
            except asyncio.CancelledError:
                self.end()
                raise
        item = self._held.popleft()
        self._fetch()
        return item

    def end(self) -> None:
        """Read no more, and forget what was not taken."""
        self._stop()
        self._interrupt()
        self._held.clear()
        self._problem = None

    def _interrupt(self) -> None:
        """End a statement that computes, again and again: it may only be about to begin."""
        if self._source.interrupt():
            with suppress(RuntimeError):  # there is no loop any more
                loop = asyncio.get_running_loop()
                loop.call_later(INTERRUPT_SECONDS, self._interrupt)

    def _stop(self) -> None:
        """Let the source go, in a thread: it may wait for requests."""
        if not self._has_ended:
            self._has_ended = True
            with suppress(InvalidError):  # the lake was closed, and so was all that it read
                self._calls.begin(self._source.drop)

    def _fetch(self) -> None:
        if self._has_ended or self._fetching is not None or len(self._held) >= AHEAD:
            return
        self._fetching = asyncio.wrap_future(self._calls.begin(self._source.next))
        self._fetching.add_done_callback(self._fetched)

    def _fetched(self, future: asyncio.Future[Any]) -> None:
        self._fetching = None
        problem = None if future.cancelled() else future.exception()
        if self._has_ended:
            return
        if future.cancelled() or problem is not None or future.result() is _END:
            self._stop()
            self._problem = problem
            return
        self._held.append(future.result())
        self._fetch()


class AsyncItems(Generic[T]):
    """An async iterator over what a call yields. Nothing is read before the first item is asked
    for; it may be closed, and is when it is dropped or its task is cancelled while it waits."""

    def __init__(self, calls: Calls, open_: Callable[[], Iterator[T]]) -> None:
        self._source: _Source[Any] = _Source(open_)
        self._calls = calls
        self._reading = _Reading[T](calls, self._source)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> T:
        return await self._reading.next()

    async def aclose(self) -> None:
        """End the read. What was not taken is dropped."""
        self._reading.end()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    def __del__(self) -> None:
        if hasattr(self, "_reading"):
            self._reading.end()


class Batches(AsyncItems[pa.RecordBatch]):
    """The rows of a query, as Arrow batches."""

    async def schema(self) -> pa.Schema:
        """Return the columns of all batches. Raises what `query` raises. Cancelling it ends the
        read."""
        try:
            return await self._calls.run(lambda: self._source.use(lambda reader: reader.schema))
        except asyncio.CancelledError:
            self._reading.end()
            raise

    async def read_all(self) -> pa.Table:
        """Return all rows in memory."""
        schema = await self.schema()
        return pa.Table.from_batches([batch async for batch in self], schema)
