"""Source splits that a pipeline reads, and what it holds of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from lakebed.feeds.committed import SplitAt
from lakebed.feeds.round_changes import SplitRecords
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


def in_turn(splits: Iterable[OpenSplit[BatchT]], first: str = "") -> list[OpenSplit[BatchT]]:
    """Return source splits that are read on, those with the fewest bytes first: none keeps another
    from being read. first: the name of one that comes before all others; empty: none does."""
    reads_on = (one for one in splits if not one.is_leaving)
    return sorted(reads_on, key=lambda one: (one.split.name != first, one.size))


def parts_of(splits: Iterable[OpenSplit[BatchT]]) -> list[SplitRecords[BatchT]]:
    """Return what a round takes of source splits: all that is held."""
    return [
        SplitRecords(
            one.split.name, one.owner, one.at, tuple(one.held), is_caught_up=one.is_caught_up
        )
        for one in splits
    ]
