"""Two threads for one stream: one makes the next item while the other uses this one."""

from __future__ import annotations

from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from lakebed.observe.usage import carried

T = TypeVar("T")


def made_ahead(items: Generator[T, None, None]) -> Generator[T, None, None]:
    """Yield what a generator gives, which another thread asks for one item ahead. An error is
    raised where it would be; when this is closed, so is the generator, after the item that it
    makes."""
    end = object()
    with ThreadPoolExecutor(1, thread_name_prefix="lakebed-ahead") as thread:
        try:
            item: T | object = thread.submit(carried(next), items, end).result()
            while item is not end:
                following = thread.submit(carried(next), items, end)
                yield item  # type: ignore[misc]  # what is not the end is an item
                item = following.result()
        finally:
            thread.submit(carried(items.close))
