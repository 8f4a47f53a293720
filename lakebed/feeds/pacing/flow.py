"""One connection's flow in one process: how fast it is read, and what happens when that is not
enough."""

from __future__ import annotations

from lakebed.feed_errors import FeedLaggingError
from lakebed.feeds.pacing.congestion import Congestion, CongestionRules
from lakebed.feeds.pacing.pace import Pace
from lakebed.observe import events


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
        self.congestion = Congestion(rules, now)
        self._stops_when_lagging = stops_when_lagging
        self._table, self._connection = table, connection
        self._taken = 0

    def read(self, records: int) -> None:
        """Note what was read."""
        self._taken += records
        self.pace.read(records)

    def look(self, now: float, *, behind: int, is_caught_up: bool) -> None:
        """Note how far the source is ahead, and say once an episode that it is for too long.

        Raises:
            FeedLaggingError: the policy says that the connection stops then.
        """
        self.congestion.see(now, behind=behind, taken=self._taken, is_caught_up=is_caught_up)
        if not self.congestion.begins_to_lag(now):
            return
        lag = round(self.congestion.lag_seconds(now))
        events.emit(
            events.FEED_LAGGING, table=self._table, connection=self._connection, lag_seconds=lag
        )
        if self._stops_when_lagging:
            raise FeedLaggingError("behind the source for too long", seconds=lag)
