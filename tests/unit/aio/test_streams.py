"""AsyncItems are read in threads, two ahead, and a read ends when nobody waits for it any more."""

import asyncio
import gc
import threading
from collections.abc import Coroutine, Iterator
from functools import partial
from typing import Any, TypeVar

import pytest

from lakebed.aio.batches import AsyncItems
from lakebed.aio.calls import Calls, Stop

T = TypeVar("T")


def run(story: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(asyncio.wait_for(story, 60))


class Numbers:
    """Counts what is read of it, and tells when it was closed. Waits before item `gate`."""

    def __init__(self, count: int = 100, *, gate: int | None = None, fails: bool = False) -> None:
        self.read = 0
        self.closed, self.reached, self.opened = (threading.Event() for _ in range(3))
        self._count, self._gate, self._fails = count, gate, fails

    def items(self) -> Iterator[int]:
        try:
            for number in range(self._count):
                if number == self._gate:
                    self.reached.set()
                    assert self.opened.wait(60)
                self.read += 1
                yield number
            if self._fails:
                raise ValueError("it failed")
        finally:
            self.closed.set()


async def wait_for(event: threading.Event) -> None:
    assert await asyncio.to_thread(event.wait, 60)


def test_two_are_in_hand_and_no_more() -> None:
    async def story() -> None:
        calls, numbers = Calls(1), Numbers()
        items = AsyncItems(calls, numbers.items)
        await calls.run(lambda: None)
        assert numbers.read == 0, "nothing is read before it is asked for"
        for taken in range(5):
            assert await anext(items) == taken
            while numbers.read < taken + 3:  # noqa: ASYNC110 - no event tells it
                await asyncio.sleep(0)
            for _ in range(10):
                await calls.run(lambda: None)  # behind whatever was begun before
            assert numbers.read == taken + 3
        assert [number async for number in items] == list(range(5, 100))
        await wait_for(numbers.closed)

    run(story())


def test_cancelling_who_waits_ends_the_read() -> None:
    async def story() -> None:
        calls, numbers = Calls(2), Numbers(gate=2)
        items = AsyncItems(calls, numbers.items)

        async def take_all() -> None:
            async for _ in items:
                pass

        task = asyncio.create_task(take_all())
        await wait_for(numbers.reached)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not numbers.closed.is_set(), "a batch that is being read is read"
        numbers.opened.set()
        await wait_for(numbers.closed)
        assert numbers.read <= 3
        with pytest.raises(StopAsyncIteration):
            await anext(items)

    run(story())


@pytest.mark.parametrize("how", ["drop", "aclose", "with"])
def test_who_stops_early_ends_the_read(how: str) -> None:
    async def story() -> None:
        calls, numbers = Calls(2), Numbers()
        items = AsyncItems(calls, numbers.items)
        if how == "with":
            async with items:
                assert await anext(items) == 0
        else:
            async for number in items:
                assert number == 0
                break
        if how == "aclose":
            await items.aclose()
        if how == "drop":
            del items
            gc.collect()
        await wait_for(numbers.closed)
        assert numbers.read <= 3

    run(story())


def test_what_came_before_a_failure_is_given() -> None:
    async def story() -> None:
        numbers = Numbers(3, fails=True)
        items = AsyncItems(Calls(2), numbers.items)
        assert [await anext(items) for _ in range(3)] == [0, 1, 2]
        with pytest.raises(ValueError, match="it failed"):
            await anext(items)
        with pytest.raises(StopAsyncIteration):
            await anext(items)

    run(story())


def test_no_more_calls_run_than_there_are_threads() -> None:
    async def story() -> None:
        calls, lock, begun = Calls(2), threading.Lock(), threading.Semaphore(0)
        running: list[int] = []
        most: list[int] = []
        gate = threading.Event()

        def call(number: int) -> int:
            with lock:
                running.append(number)
                most.append(len(running))
            begun.release()
            assert gate.wait(60)
            with lock:
                running.remove(number)
            return number

        tasks = [asyncio.create_task(calls.run(partial(call, n))) for n in range(6)]
        for _ in range(2):
            assert await asyncio.to_thread(begun.acquire, timeout=60)
        tasks[5].cancel()
        with pytest.raises(asyncio.CancelledError):
            await tasks[5]
        gate.set()
        assert await asyncio.gather(*tasks[:5]) == [0, 1, 2, 3, 4]
        assert max(most) == 2
        assert len(most) == 5, "what was cancelled before its turn never ran"

    run(story())


def test_a_call_that_can_stop_does_when_it_is_cancelled() -> None:
    async def story() -> None:
        calls, begun, ended = Calls(1), threading.Event(), threading.Event()
        stop = Stop(lambda: False)

        def work() -> None:
            begun.set()
            while not stop():
                pass
            ended.set()

        task = asyncio.create_task(calls.run(work, stop))
        await wait_for(begun)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await wait_for(ended)
        assert Stop(lambda: True)()

    run(story())
