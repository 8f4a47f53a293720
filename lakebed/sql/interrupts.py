"""Ends statements from another thread than the one that waits for their rows."""

from __future__ import annotations

from contextvars import ContextVar
from threading import Lock
from typing import Protocol
from weakref import WeakSet


class Interruptible(Protocol):
    """A piece of work that may be ended while it goes on."""

    def interrupt(self) -> None:
        """End what runs, now, from any thread: the thread that waits for it gets an error."""


class Interrupts:
    """The work that was begun, and can be ended together. Safe to use from several threads."""

    def __init__(self) -> None:
        self._begun: WeakSet[Interruptible] = WeakSet()
        self._lock = Lock()

    def add(self, work: Interruptible) -> None:
        """Let something be ended with the others."""
        with self._lock:
            self._begun.add(work)

    def interrupt(self) -> None:
        """End what runs. What only begins meanwhile is not: call it again."""
        with self._lock:  # a set that grows cannot be read
            begun = list(self._begun)
        for work in begun:
            work.interrupt()


CURRENT: ContextVar[Interrupts | None] = ContextVar("lakebed_interrupts", default=None)
"""The interrupts by which another thread may end what the running code begins."""
