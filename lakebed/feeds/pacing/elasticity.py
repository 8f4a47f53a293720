"""Computes how many workers feeds need, from what workers say in their beats. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Protocol

import msgspec

FLOW_SECONDS = 10.0
"""Seconds over which a pipeline's flow is measured."""
CATCH_UP_SECONDS = 300.0
"""Seconds in which a feed is to catch up with what it is behind."""
SPARE = 0.25
"""Share of what one worker fewer could do that must be spare: without it none is given up."""
SPARE_SECONDS = 600.0
"""Seconds for which so much must be spare."""


class WorkersAsked(msgspec.Struct, frozen=True):
    """The numbers of workers that a policy asks for.

    least, most: workers; 0: it is not elastic.
    at_lag: whether it asks for more when it lags, too.
    """

    least: int = 0
    most: int = 0
    at_lag: bool = False


class WorkerLoad:
    """The load that one pipeline puts on one worker. All times are of one monotonic clock.

    load: how many workers as busy as this one it needs for what comes, and for what it is behind.
    """

    def __init__(self) -> None:
        self.load = 0.0
        self._busy = 0.0
        self._since: float | None = None
        self._read = self._behind = 0

    def was_busy(self, seconds: float) -> None:
        """Take in how long a turn took that did something."""
        self._busy += seconds

    def see(self, now: float, *, read: int, behind: int) -> None:
        """Take in how many records were taken since the beginning, and how many are not yet."""
        if self._since is not None and now - self._since < FLOW_SECONDS:
            return
        if self._since is not None:
            passed = now - self._since
            out = (read - self._read) / passed
            inflow = max(0.0, out + (behind - self._behind) / passed)
            self.load = load_of(self._busy / passed, inflow, out, behind)
        self._since, self._busy, self._read, self._behind = now, 0.0, read, behind


def load_of(busy: float, inflow: float, outflow: float, behind: int) -> float:
    """Return how many workers do what comes in a second, and what is behind within five minutes.

    busy: share of its time in which one of them took `outflow` records a second.
    """
    wanted = inflow + behind / CATCH_UP_SECONDS
    if not wanted:
        return 0.0
    if outflow <= 0:
        return 1.0  # nothing is known of what it could do
    return min(busy, 1.0) * wanted / outflow


class LoadReport(Protocol):
    """A worker's report of the load of one pipeline.

    load: as `WorkerLoad`.
    workers_min, workers_max: how many its policy asks for; 0: it is not elastic.
    is_asking: whether it asks for more now: it is congested, or lags.
    """

    @property
    def load(self) -> float: ...
    @property
    def workers_min(self) -> int: ...
    @property
    def workers_max(self) -> int: ...
    @property
    def is_asking(self) -> bool: ...


class Elasticity:
    """The number of workers that are wanted, over time: more at once, fewer after ten minutes."""

    def __init__(self) -> None:
        self._spare_since: float | None = None

    def see(self, now: float, reports: Iterable[LoadReport], running: int) -> int:
        """Return how many workers are wanted; as many as run where no feed is elastic.

        reports: of all workers that live.
        running: how many these are.
        """
        given = list(reports)
        least, most = bounds_of(given)
        if not most:
            self._spare_since = None
            return running
        needed = needed_workers(given)
        if not has_spare(given, running):
            self._spare_since = None
        elif self._spare_since is None:
            self._spare_since = now
        wanted = running
        if needed > running and any(one.is_asking for one in given):
            wanted = needed
        elif self._spare_since is not None and now - self._spare_since >= SPARE_SECONDS:
            wanted, self._spare_since = running - 1, now
        return max(least, min(wanted, most))


def has_spare(reports: Iterable[LoadReport], running: int) -> bool:
    """Return whether one worker fewer would have enough to spare. running: how many live."""
    return running > 1 and sum(one.load for one in reports) <= (1 - SPARE) * (running - 1)


def bounds_of(reports: Iterable[LoadReport]) -> tuple[int, int]:
    """Return how many workers are wanted at least and at most; 0, 0 if no feed is elastic."""
    elastic = [(one.workers_min, one.workers_max) for one in reports if one.workers_max]
    if not elastic:
        return 0, 0
    return max(least for least, _ in elastic), max(most for _, most in elastic)


def needed_workers(reports: Iterable[LoadReport]) -> int:
    """Return how many workers would do all that comes, within the bounds of elastic feeds; 0: no
    feed is elastic."""
    given = list(reports)
    least, most = bounds_of(given)
    return max(least, min(math.ceil(sum(one.load for one in given)), most)) if most else 0
