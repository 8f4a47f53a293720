"""Source splits that a pipeline reads, and what it holds of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from lakebed.feeds.committed import SplitAt
from lakebed.ports.record_source import Records, SourceSplit, SplitReader

BatchT = TypeVar("BatchT")


@dataclass
class OpenSplit(Generic[BatchT]):
    """A source split that is being read.

    at: how far it was taken when `held` was read.
    is_caught_up: whether the source had no more of it when it was asked last.
    """

    split: SourceSplit
    owner: int
    at: SplitAt
    reader: SplitReader[BatchT]
    held: list[Records[BatchT]] = field(default_factory=list)
    is_leaving: bool = False
    is_caught_up: bool = False

    @property
    def size(self) -> int:
        """Bytes that are held."""
        return sum(records.size for records in self.held)

    @property
    def count(self) -> int:
        """Records that are held."""
        return sum(records.count for records in self.held)


def in_turn(splits: Iterable[OpenSplit[BatchT]]) -> list[OpenSplit[BatchT]]:
    """Return source splits that are read on, those with the fewest bytes first: none keeps another
    from being read."""
    return sorted((one for one in splits if not one.is_leaving), key=lambda one: one.size)
