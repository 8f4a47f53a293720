"""One connection's flow in one process: how fast it is read, and what happens when that is not
enough."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from lakebed.feed_errors import FeedLaggingError
from lakebed.feeds.committed import count_of
from lakebed.feeds.open_splits import OpenSplit
from lakebed.feeds.pacing.congestion import Congestion, CongestionRules, Relief, Rung
from lakebed.feeds.pacing.lag import Lag, SplitReach
from lakebed.feeds.pacing.pace import Pace
from lakebed.observe import events

HOUR_KNOWN_SECONDS = 540.0
"""Seconds after a commit for which the hour of the newest entry is that of the next, or ends within
ten minutes of it, which `CommitRound` looks at."""


class Flow:
    """Follows what is read, turn by turn. All times are seconds of one monotonic clock.

    per_second: records that are read at the most; 0: all.
    stops_when_lagging: whether the connection stops then.
    table, connection: for its events.
    """

    def __init__(
        self,
        rules: CongestionRules,
        *,
        per_second: int,
        stops_when_lagging: bool,
        now: float,
        table: str,
        connection: str,
    ) -> None:
        self.pace = Pace(per_second, now)
        self.congestion = Congestion(rules)
        self.lag = Lag(rules.lag_seconds_max)
        self._stops_when_lagging = stops_when_lagging
        self._table, self._connection = table, connection
        self._taken = 0
        self._committed: float | None = None

    @property
    def standing(self) -> tuple[Rung | None, bool]:
        """Return what is done about congestion, None: there is none, and whether it lags."""
        return self.congestion.rung, self.lag.is_lagging

    def read(self, records: int) -> None:
        """Note what was read."""
        self._taken += records
        self.pace.read(records)

    def committed(self, now: float) -> None:
        """Note that a round was committed."""
        self._committed = now

    def relief(self, now: float) -> Relief:
        """Return what the next round leaves out. The newest are not discarded by what the ledger
        says of an hour that may have ended long ago: none was committed since."""
        relief = self.congestion.relief
        if self._committed is None or now - self._committed >= HOUR_KNOWN_SECONDS:
            return Relief(relief.keep)
        return relief

    def look(self, now: float, *, behind: int, is_caught_up: bool, is_full: bool = False) -> None:
        """Note how far the source is ahead, and whether no more may wait on the disk."""
        self.congestion.see(
            now, behind=behind, taken=self._taken, is_caught_up=is_caught_up, is_full=is_full
        )

    def look_at_lag(self, now: float, splits: Collection[OpenSplit[Any]]) -> None:
        """Look how long records wait, and say once an episode that it is for too long.

        Raises:
            FeedLaggingError: the policy says that the connection stops then.
        """
        if not self.lag.see(now, {one.split.name: _reach(one) for one in splits}):
            return
        seconds = round(self.lag.seconds)
        events.emit(
            events.FEED_LAGGING, table=self._table, connection=self._connection, lag_seconds=seconds
        )
        if self._stops_when_lagging:
            raise FeedLaggingError("behind the source for too long", seconds=seconds)


def _reach(one: OpenSplit[Any]) -> SplitReach:
    committed = count_of(one.at.position)
    read = one.held[-1].end if one.held else committed
    return SplitReach(committed, read + (one.reader.behind() or 0))
