"""Keeps what is known of row groups that were read, for who reads on in the same files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

Known = TypeVar("Known")


class OpenRowGroups(Generic[Known]):
    """A cache of facts about row groups, one of each file, bounded in number. Not for two threads.

    What is known of one may be used by one reader at a time: taking it removes it.
    """

    def __init__(self, count_max: int) -> None:
        self._count_max = count_max
        self._held: dict[str, tuple[int, Known]] = {}

    def take(self, path: str, row_group: int) -> Known | None:
        """Return what is known of a row group, and forget whatever is of its file."""
        number, known = self._held.pop(path, (row_group, None))
        return known if number == row_group else None

    def all(self) -> Iterator[Known]:
        """Yield what is known of each row group."""
        for _, known in self._held.values():
            yield known

    def put(self, path: str, row_group: int, known: Known) -> None:
        """Keep what is known of a row group, instead of another of its file, or of the file that
        was kept longest."""
        self._held.pop(path, None)
        self._held[path] = row_group, known
        if len(self._held) > self._count_max:
            del self._held[next(iter(self._held))]
