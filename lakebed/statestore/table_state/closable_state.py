"""A table's state that is open while it is used, and may be closed whenever it is not."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from lakebed.model.open_limit import OpenLimit
from lakebed.statestore.table_state.database_errors import FREE_SPACE
from lakebed.statestore.table_state.state import TableState

OPEN_STATES_MAX = 64
"""Each open state holds three file descriptors: the cache file, its log and its shared memory."""
WARM_STATES_MAX = 4
"""States that keep their pages in memory (`CACHE_KIB` each) while unused."""


class ClosableState:
    """Opens a state when it is used. Safe to share among threads; one thread holds it at a time.

    open_state: opens it, each time it is wanted and closed. limits: bound how many are open.
    set_aside: puts a state that does not prove itself out of the way of the next opening (H37).
    """

    def __init__(
        self,
        open_state: Callable[[], TableState],
        limits: StateLimits | None = None,
        *,
        set_aside: Callable[[], None] | None = None,
    ) -> None:
        self._open_state = open_state
        self._limits = limits
        self._set_aside = set_aside
        self._lock = threading.RLock()
        self._holders = 0
        self._state: TableState | None = None

    @contextmanager
    def held(self) -> Iterator[TableState]:
        """Give the state, which no other thread uses or closes until the end.

        Raises:
            CorruptError: its file is damaged. UnavailableError: it cannot be opened.
        """
        with self._lock:
            self._holders += 1
            try:
                yield self.state
            finally:
                self._holders -= 1

    @property
    def state(self) -> TableState:
        """Return the state, opened if need be. Only who holds it may rely on it to stay open."""
        with self._lock:
            state = self._state
            if state is None:
                state = self._state = self._open_state()
            if self._limits is not None:
                self._limits.used(self)
            return state

    def close(self) -> None:
        """Wait for who holds it, and close it; the next use opens it again."""
        with self._lock:
            if self._holders:
                raise AssertionError("a thread closes a state that it holds")
            if self._limits is not None:
                self._limits.forget(self)
            self._close()

    def renew(self) -> bool:
        """Let the next use open a state that is made anew; False: it cannot be. For who holds a
        state that did not prove itself, outside of its transactions."""
        if self._set_aside is None:
            return False
        with self._lock:
            self._close()
            self._set_aside()
        return True

    def close_if_unused(self) -> bool:
        """Close it, unless it is held: False, at once."""
        return self._if_unused(self._close)

    def drop_pages_if_unused(self) -> bool:
        """Give back the memory of its pages, unless it is held: False, at once."""
        return self._if_unused(self._drop_pages)

    def _if_unused(self, act: Callable[[], None]) -> bool:
        if not self._lock.acquire(blocking=False):
            return False
        try:
            if self._holders or (self._state and self._state.connection.in_transaction):
                return False  # this very thread holds it and opens another one
            act()
            return True
        finally:
            self._lock.release()

    def _close(self) -> None:
        if self._state is not None:
            self._state.connection.close()
            self._state = None

    def _drop_pages(self) -> None:
        if self._state is not None:
            self._state.connection.execute("PRAGMA shrink_memory")
            self._state.forget_proof()


class StateLimits:
    """The limits of how many states of a process may be open, and how many keep pages in memory.

    bytes_max: of all states on the disk together; None: no bound.
    full_hint: what to do when the disk has no room for a state.
    """

    def __init__(
        self,
        open_max: int = OPEN_STATES_MAX,
        warm_max: int = WARM_STATES_MAX,
        *,
        bytes_max: int | None = None,
        full_hint: str = FREE_SPACE,
    ) -> None:
        self.bytes_max = bytes_max
        self.full_hint = full_hint
        self._open = OpenLimit(open_max, ClosableState.close_if_unused)
        self._warm = OpenLimit(warm_max, ClosableState.drop_pages_if_unused)

    def used(self, state: ClosableState) -> None:
        """Note that a state is open and in use."""
        self._open.used(state)
        self._warm.used(state)

    def forget(self, state: ClosableState) -> None:
        """Count a state no more: it is closed."""
        self._open.forget(state)
        self._warm.forget(state)
