"""Holds what a pipeline is to commit because an operator wants it: all that it held when it
heard."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, TypeVar

from lakebed.feeds.open_splits import OpenSplit

BatchT = TypeVar("BatchT")


class Flush(Generic[BatchT]):
    """The last wish that a pipeline heard of.

    It is fulfilled when each source split is committed as far as it was read then, also if rounds
    were refused meanwhile and all was read again. A source split that another worker takes over
    before that leaves it unfulfilled: this one cannot know.
    """

    def __init__(self) -> None:
        self._ends: dict[str, int] = {}
        self._asked = self._done = 0

    @property
    def is_wanted(self) -> bool:
        """Return whether something is to be committed for the flush."""
        return bool(self._ends)

    @property
    def done(self) -> int:
        """Return the number of the last wish that is fulfilled."""
        return self._done

    def ask(self, number: int, splits: Iterable[OpenSplit[BatchT]]) -> None:
        """Take a wish. splits: that are read now."""
        self._ends = {one.split.name: one.held[-1].end for one in splits if one.held}
        self._asked = number
        if not self._ends:
            self._done = number

    def committed(self, split: str, end: int) -> None:
        """Note how far a source split is committed."""
        if end >= self._ends.get(split, end + 1):
            del self._ends[split]
            if not self._ends:
                self._done = self._asked
