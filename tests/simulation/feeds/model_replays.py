"""Replays of a quarantine in the simulation: by the real plan, with records that are tuples."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from lakebed.landing import quarantine_source
from lakebed.landing.quarantine_source import PlannedReplay, QuarantineSource
from lakebed.model.feeds.positions import Position
from lakebed.model.feeds.replays import end_of, resume_of
from lakebed.ports.record_source import Records, SourceSplit

AT_ONCE = 4
"""Records of one read."""


class ModelReplayed:
    """Reads records of a replay."""

    def __init__(
        self, rows: Callable[[int, int], Iterator[Any]], begin: int, end: int, resume: bytes
    ) -> None:
        self._rows = rows
        self._next = begin
        self._end = end
        self._resume = resume

    def read(self, *, bytes_max: int, wait_seconds: float = 0.0) -> Records[list[Any]] | None:
        """Return the next records."""
        found = [(row[2], row[3]) for batch in self._rows(self._next, self._end) for row in batch]
        batch = sorted(found)[:AT_ONCE]
        if not batch:
            return None
        begin, self._next = self._next, batch[-1][0] + 1
        size = 8 * len(batch)
        return Records(
            begin=begin,
            end=self._next,
            count=len(batch),
            size=size,
            batch=batch,
            resume=self._resume,
        )

    def behind(self) -> int:
        """Return how many positions there may be."""
        return self._end - self._next

    def acknowledge(self, end: int) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Hold nothing."""


class ModelQuarantine(QuarantineSource):
    """A quarantine whose records are tuples."""

    def open(  # type: ignore[override]  # its records are tuples
        self, split: SourceSplit, begin: int, *, resume: bytes = b""
    ) -> ModelReplayed:
        """Return a reader of a replay."""
        planned = self._planned[split.name]
        end = end_of(Position(1, begin, resume=resume)) if resume else planned.end
        return ModelReplayed(partial(self._rows, planned), begin, end, resume_of(end))


def planned_replays(
    positions: dict[str, Position], finished: list[PlannedReplay] | None
) -> list[PlannedReplay]:
    """Return what was begun, or what comes behind what is finished. Looked up when it is called:
    twins break it."""
    if finished is None:
        return quarantine_source.unfinished_replays(positions)
    return quarantine_source.next_replays(positions, finished)
