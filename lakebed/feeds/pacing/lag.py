"""Computes how long a connection's oldest record waits that it has not taken. Pure.

A source says how far it reaches. Who remembers when it said so knows how old a record is at the
least that is not taken yet, by one clock, whatever times records have. All times are seconds of one
monotonic clock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

import msgspec

MARKS_MAX = 64
"""Most marks of a source split. They reach back for twice the bound that matters."""
UNBOUNDED_SECONDS = 300.0
"""The bound that matters where a policy has none: only figures show it."""


class SplitReach(msgspec.Struct, frozen=True):
    """The position up to which a source split was committed, and that of its source's end."""

    committed: int
    end: int


class Lag:
    """Measures one pipeline.

    seconds_max: from which on it lags; 0: never.
    seconds: how long the oldest record waits, as far as this process has seen it come.
    is_lagging: whether that was too long, and is not yet half as long again.
    """

    def __init__(self, seconds_max: float) -> None:
        self._seconds_max = seconds_max
        self._spacing = 2 * (seconds_max or UNBOUNDED_SECONDS) / MARKS_MAX
        self._marks: dict[str, deque[tuple[float, int]]] = {}
        self.seconds = 0.0
        self.is_lagging = False

    def see(self, now: float, reaches: Mapping[str, SplitReach]) -> bool:
        """Take in how far source splits reach. Returns whether an episode of too great a lag begins
        with this look.

        reaches: of all source splits that are read; empty: nothing is known now, such as behind an
            error.
        """
        if reaches:
            self._marks = {name: self._marks.get(name, deque()) for name in reaches}
        for name, reach in reaches.items():
            marks = self._marks[name]
            while marks and marks[0][1] <= reach.committed:
                marks.popleft()
            is_known = marks and (marks[-1][1] >= reach.end or now - marks[-1][0] < self._spacing)
            if reach.end > reach.committed and not is_known and len(marks) < MARKS_MAX:
                marks.append((now, reach.end))
        oldest = min((marks[0][0] for marks in self._marks.values() if marks), default=now)
        self.seconds = now - oldest
        was_lagging = self.is_lagging
        bound = self._seconds_max / 2 if was_lagging else self._seconds_max
        self.is_lagging = 0 < bound < self.seconds
        return self.is_lagging and not was_lagging
