"""A bound on how many of many things are open at once, whatever threads use them."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)


class OpenLimit(Generic[T]):
    """A bound on how many things are open; the least recently used ones are closed first.

    close: closes a thing and returns True, or returns False at once because the thing is in use:
    it stays open then, beyond the bound if need be, and is tried again when another one is opened.
    """

    def __init__(self, open_max: int, close: Callable[[T], bool]) -> None:
        if open_max < 1:
            raise AssertionError(f"at least one thing may be open, got {open_max}")
        self._open_max = open_max
        self._close = close
        self._lock = threading.Lock()
        self._open: OrderedDict[T, None] = OrderedDict()
        self._newest: T | None = None

    def used(self, thing: T) -> None:
        """Note that a thing is open and in use, and close unused ones beyond the bound.

        Call it while the thing is held, so that no other thread closes it in between.
        """
        if self._newest is thing:
            return
        with self._lock:
            self._newest = thing
            self._open[thing] = None
            self._open.move_to_end(thing)
            surplus = len(self._open) - self._open_max
            unused = list(self._open)[:-1] if surplus > 0 else []
        for oldest in unused:
            if surplus > 0 and self._let_go(oldest):
                surplus -= 1

    def forget(self, thing: T) -> None:
        """Count a thing no more: its owner closes it."""
        with self._lock:
            self._open.pop(thing, None)
            if self._newest is thing:
                self._newest = None

    def _let_go(self, thing: T) -> bool:
        """Close a thing outside of the lock: closing may write to the disk. It is forgotten before,
        so that a thread that opens it again meanwhile counts it again."""
        self.forget(thing)
        if self._close(thing):
            return True
        with self._lock:
            if thing not in self._open:
                self._open[thing] = None
                self._open.move_to_end(thing, last=False)
        return False
