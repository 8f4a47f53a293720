"""Heads of tables, kept warm: each state is a cache file on the local disk, within a bound of
bytes, and few of them are open at once."""

from __future__ import annotations

import random
import threading
from functools import partial
from pathlib import Path
from weakref import WeakValueDictionary

from lakebed.errors import InvalidError, StorageFullError
from lakebed.model.names import TableId
from lakebed.model.open_limit import OpenLimit
from lakebed.ports.clock import Clock
from lakebed.ports.object_store import ObjectStore
from lakebed.ports.transaction_log import TransactionLogs
from lakebed.statestore.format_gate import AskFormats, newest_formats
from lakebed.statestore.head import TableHead
from lakebed.statestore.snapshots import Snapshots
from lakebed.statestore.table_state.closable_state import ClosableState, StateLimits
from lakebed.statestore.table_state.layout import (
    ASIDE_MAX,
    open_cache,
    problem_of_cache,
    remove_cache,
    set_aside_if_damaged,
)
from lakebed.statestore.table_state.state import TableState

_SUFFIX = ".sqlite"
_PARTS = ("", "-wal", "-shm")
KNOWN_HEADS_MAX = 1_024
"""Heads that are kept while unused: a few KiB each, their states closed or open."""


class WarmHeads:
    """Heads of tables, one for each; processes may share the folder with their states.

    Safe to share among threads. limits: how many states are open at once, and how many bytes they
    have; None: the usual number, and no bound of bytes. A state that is closed stays on the disk,
    and its head opens it again when it is used.

    Where there is a bound of bytes, the longest unused states are closed and deleted, and read
    again from snapshots and log when they are wanted. The one that was asked for last stays,
    however large; and the heads belong to one thread. scratch: a folder for temporary files.
    formats: knows what may be written.
    """

    def __init__(
        self,
        *,
        folder: Path,
        scratch: Path,
        logs: TransactionLogs,
        objects: ObjectStore,
        clock: Clock,
        rng: random.Random,
        limits: StateLimits | None = None,
        formats: AskFormats = newest_formats,
    ) -> None:
        self._formats = formats
        self._folder = folder
        self._scratch = scratch
        self._logs = logs
        self._objects = objects
        self._clock = clock
        self._rng = rng
        self._limits = limits or StateLimits()
        self._bytes_max = self._limits.bytes_max
        self._lock = threading.Lock()
        self._is_closed = False
        # One head a table, as long as it is in use; unused ones are kept for a while.
        self._heads: WeakValueDictionary[TableId, TableHead] = WeakValueDictionary()
        self._known: OpenLimit[TableHead] = OpenLimit(KNOWN_HEADS_MAX, close=lambda _: True)
        # The longest unused first; what a former process left is older than what this one opens.
        self._sizes = {} if self._bytes_max is None else self._left_behind()

    def __call__(self, table: TableId) -> TableHead:
        """Return the head of a table, its state open.

        Raises:
            CorruptError: the cache of its state is damaged. UnavailableError: it cannot be opened.
            StorageFullError: the disk has no room for it, not even without other tables' states.
        """
        with self._lock:
            head = self._heads.get(table)
            if head is None:
                head = self._heads[table] = self._made(table)
        self._known.used(head)
        try:
            with head.holding():
                pass
        except StorageFullError:
            if self._bytes_max is None:
                raise
            self._make_room(table, 0)  # others are read again; this one has nowhere else to go
            with head.holding():
                pass
        if self._bytes_max is not None:
            self._make_room(table, self._bytes_max)
        return head

    def snapshots(self, table: TableId) -> Snapshots:
        """Return the snapshots of a table."""
        return Snapshots(
            table,
            self._objects,
            scratch=self._scratch,
            formats=self._formats,
            full_hint=self._limits.full_hint,
        )

    def cache_path(self, table: TableId) -> Path:
        """Return where the state of a table is kept. Deleting it is safe while no process runs."""
        return self._folder / f"{table}{_SUFFIX}"

    def problem_of_cache(self, table: TableId) -> str:
        """Return why the cache of a state does not prove itself; "": it does, or there is none."""
        return problem_of_cache(self.cache_path(table))

    def rebuild(self, table: TableId) -> None:
        """Delete what is kept of a state, and make it anew. No other process may use the folder."""
        self._close(table)
        remove_cache(self.cache_path(table))
        self(table).follow()

    def close(self) -> None:
        """Close all states; their files stay. Nothing opens them again."""
        self._is_closed = True
        for table in list(self._heads):
            self._close(table)

    def require_open(self) -> None:
        """Raise InvalidError when these heads were closed."""
        if self._is_closed:
            raise InvalidError("the lake was closed", hint="connect to it again")

    def _close(self, table: TableId) -> None:
        head = self._heads.get(table)
        if head is not None:
            head.close()

    def _made(self, table: TableId) -> TableHead:
        state = ClosableState(
            partial(self._opened_state, table),
            self._limits,
            set_aside=partial(self._set_aside, table),
        )
        head = TableHead(
            self._logs.open(table),
            state,
            clock=self._clock,
            rng=self._rng,
            snapshots=self.snapshots(table),
            formats=self._formats,
        )
        head.times.table = table
        return head

    def _opened_state(self, table: TableId) -> TableState:
        self.require_open()
        begin, hint = self.snapshots(table).begin_cache, self._limits.full_hint
        try:
            state = TableState(open_cache(self.cache_path(table), begin=begin))
        except StorageFullError as error:
            raise StorageFullError(error.message, table=table, hint=hint) from error
        state.full_hint = hint
        return state

    def _set_aside(self, table: TableId) -> None:
        kept = ASIDE_MAX if self._bytes_max is None else 0  # what has a bound has no room for it
        set_aside_if_damaged(self.cache_path(table), kept_max=kept)

    def _make_room(self, table: TableId, bytes_max: int) -> None:
        for last in list(self._sizes)[-1:]:  # it has grown since it was asked for
            self._sizes[last] = self._size(last)
        self._sizes.pop(table, None)
        self._sizes[table] = self._size(table)
        for unused in list(self._sizes)[:-1]:
            if sum(self._sizes.values()) <= bytes_max:
                return
            self._close(unused)
            remove_cache(self.cache_path(unused))
            del self._sizes[unused]

    def _size(self, table: TableId) -> int:
        return _state_bytes(self.cache_path(table))

    def _left_behind(self) -> dict[TableId, int]:
        sizes = _states_in(self._folder)
        return {TableId(path.name.removesuffix(_SUFFIX)): size for path, size in sizes.items()}


def remove_unused_states(folder: Path, *, bytes_max: int) -> None:
    """Delete states that earlier processes left in a folder, the longest unused first, until the
    rest has so many bytes. One that a process has open is whole for it as long as that lasts."""
    sizes = _states_in(folder)
    left = sum(sizes.values())
    for path, size in sizes.items():
        if left <= bytes_max:
            return
        remove_cache(path)
        left -= size


def _states_in(folder: Path) -> dict[Path, int]:
    """Return the states in a folder with their bytes, the longest unused first."""
    paths = sorted(folder.glob(f"*{_SUFFIX}"), key=lambda path: path.stat().st_mtime)
    return {path: _state_bytes(path) for path in paths}


def _state_bytes(path: Path) -> int:
    parts = (path.with_name(path.name + part) for part in _PARTS)
    return sum(part.stat().st_size for part in parts if part.exists())
