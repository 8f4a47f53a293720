"""Keeps what was used lately and may be used again, bounded by bytes."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

KeyT = TypeVar("KeyT", bound=Hashable)
ValueT = TypeVar("ValueT")


class ByteCache(Generic[KeyT, ValueT]):
    """Keeps values until their sizes exceed `bytes_max`; those not used for longest go first. One
    that alone is too large stays until the next comes.

    May be used by many threads. Values are never changed after they were put.
    """

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._bytes = 0
        self._held: OrderedDict[KeyT, tuple[ValueT, int]] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def size(self) -> int:
        """Return how many bytes are held."""
        return self._bytes

    def get(self, key: KeyT) -> ValueT | None:
        """Return the value of a key, if it is held."""
        with self._lock:
            found = self._held.get(key)
            if found is None:
                return None
            self._held.move_to_end(key)
            return found[0]

    def put(self, key: KeyT, value: ValueT, size: int) -> None:
        """Keep a value. size: in bytes, about."""
        with self._lock:
            if key in self._held:
                return
            self._held[key] = value, size
            self._bytes += size
            while self._bytes > self._bytes_max and len(self._held) > 1:
                self._bytes -= self._held.popitem(last=False)[1][1]
