"""Strategies of compaction that users write: who asks them, and what they are told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

import msgspec

from lakebed.config.settings import TableSettings


class LeafFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file of a leaf that no job holds, as a strategy sees it.

    name: stands for it in the answer.
    rows: of this leaf; after a split an estimate.
    bytes: of the whole file, in which other leaves may have rows, too.
    seconds: for about how long it is there.
    """

    name: str
    rows: int
    bytes: int
    seconds: int


Ask = Callable[[Sequence[LeafFile]], object]
"""Asks a strategy about one leaf, whose oldest file is first. Returns what it gave, as JSON values,
unchecked. Raises: StrategyError."""


class CompactionStrategies(Protocol):
    """Finds users' strategies and asks them."""

    def opened(self, settings: TableSettings) -> AbstractContextManager[Ask]:
        """Return who asks the strategy that a table's settings name, about one leaf after the
        other, until the block ends. All of it may take a bounded time."""
        ...
