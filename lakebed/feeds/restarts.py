"""Decides when work that failed is begun again, and what is said of the failure. Pure."""

from __future__ import annotations

import traceback
from pathlib import Path

import msgspec

from lakebed.errors import LakebedError
from lakebed.model.feeds.definitions import FeedFailure

HOUR_SECONDS = 3_600.0

BUG = "bug"
"""Code of a failure that no error of ours says: one in this program, or in an adaptor."""


class RestartRules(msgspec.Struct, frozen=True, kw_only=True):
    """The rules of a policy for failures of a source, or of code.

    max: so often in an hour; then the failure is final.
    seconds_min, seconds_max: the wait before the first, which doubles, and the longest one.
    """

    max: int = 10
    seconds_min: float = 1.0
    seconds_max: float = 60.0


class Restarts:
    """The record of recent failures, from which the next wait follows. All times are seconds of one
    monotonic clock."""

    def __init__(self, rules: RestartRules) -> None:
        self._rules = rules
        self._failed: list[float] = []
        self._in_row = 0

    def worked(self) -> None:
        """Something was committed: the next wait is a short one again."""
        self._in_row = 0

    def waits(self, now: float, *, is_counted: bool) -> float | None:
        """Return how long to wait after a failure; None: it is final.

        is_counted: whether the policy's bound counts it. A store that is busy or away is no
        failure of the source: it is asked again as long as it takes.
        """
        if is_counted:
            self._failed = [at for at in self._failed if now - at < HOUR_SECONDS]
            if len(self._failed) >= self._rules.max:
                return None
            self._failed.append(now)
        wait = self._rules.seconds_min * 2.0 ** min(self._in_row, 30)
        self._in_row += 1
        return min(wait, self._rules.seconds_max)


def failure_of(error: Exception, version: int) -> FeedFailure:
    """Return what the registry is to know. Of a bug it hears where it is, and nothing that it says:
    that may be a record's."""
    if isinstance(error, LakebedError):
        return FeedFailure(error.code(), str(error), version)
    frames = traceback.extract_tb(error.__traceback__)
    where = f"{Path(frames[-1].filename).name}, line {frames[-1].lineno}" if frames else ""
    return FeedFailure(BUG, f"{type(error).__name__} in {where}", version)
