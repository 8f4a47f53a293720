"""When work that failed is begun again: a pure decision."""

from __future__ import annotations

import msgspec

HOUR_SECONDS = 3_600.0


class RestartRules(msgspec.Struct, frozen=True, kw_only=True):
    """What a policy says of failures of a source, or of code.

    max: so often in an hour; then the failure is final.
    seconds_min, seconds_max: the wait before the first, which doubles, and the longest one.
    """

    max: int = 10
    seconds_min: float = 1.0
    seconds_max: float = 60.0


class Restarts:
    """What failed how often. All times are seconds of one monotonic clock."""

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
