"""Defines what a feed's commit says of event time: it moves the watermark (R18), and it counts rows
in windows, which the watermark seals (R19).

`check` may refuse and changes nothing. `apply` never refuses (protocol H4). Both know only the
state, the change and the log time of its entry: never a worker's clock.
"""

from __future__ import annotations

import msgspec

from lakebed.errors import InvalidError, TableBusyError
from lakebed.feed_errors import WindowSealedError
from lakebed.model.feeds.positions import position_name
from lakebed.model.feeds.windows import (
    SplitTime,
    WindowCount,
    WindowRules,
    check_ahead,
    check_splits,
    check_windows,
)
from lakebed.model.names import MICROS_PER_SECOND, ConnectionId
from lakebed.statestore.log_entries.feed_changes import check_version
from lakebed.statestore.table_state.feed_records import Connection, connection_of
from lakebed.statestore.table_state.state import Moment, TableState
from lakebed.statestore.table_state.window_records import (
    OPEN_MAX,
    advance,
    has_room_for_windows,
    watermark_of,
)


class Advance(msgspec.Struct, frozen=True, array_like=True, tag="advance"):
    """The progress of a connection in event time with one commit, and the windows of its rows.

    version: of the definition by which its rows were made.
    splits: each source split once. One with an event time, or caught up, moves its position, too.
    windows: by their start, each once; together they count the rows that the commit stores, and of
        those that the table's own filter leaves out at most all.
    """

    connection: ConnectionId
    version: int
    rules: WindowRules
    splits: tuple[SplitTime, ...]
    windows: tuple[WindowCount, ...] = ()

    def check(self, state: TableState) -> None:
        known = check_version(state, self.connection, self.version)
        self.rules.check()
        for split in self.splits:
            position_name(self.connection, split.source_split)
        check_splits(tuple(split.source_split for split in self.splits))
        if not self.splits:
            raise InvalidError(
                "event times are given without a source split",
                hint="name the source split that they come from",
            )
        check_windows(self.windows, self.rules)
        self._check_sealed(state, known)
        ends = (window.start + self.rules.window for window in self.windows)
        if not has_room_for_windows(state, known, ends, self.rules.window_seconds):
            raise TableBusyError(
                "too many windows are open",
                connection=self.connection,
                max=OPEN_MAX,
                hint="wait: they are sealed when each source split has come further or is idle",
            )

    def check_time(self, moment: Moment) -> None:
        """Refuse event times that lie too far ahead of the entry's log time. Raises:
        InvalidError."""
        latest = moment.at + self.rules.ahead_seconds_max * MICROS_PER_SECOND
        check_ahead(self.splits, self.windows, latest=latest)

    def _check_sealed(self, state: TableState, known: Connection) -> None:
        if self.rules.late == "accept":
            return
        watermark = watermark_of(state, known)
        for window in self.windows:
            is_sealed = watermark.is_sealed(window.start + self.rules.window)
            if is_sealed and window.rows:
                raise WindowSealedError(
                    "a window is sealed that rows were made for",
                    connection=self.connection,
                    start=window.start,
                    rows=window.rows,
                    hint="stage the batch again: these rows are late now",
                )
            if window.late and not is_sealed:
                raise InvalidError(
                    "rows are called late in an open window",
                    start=window.start,
                    hint="count them as rows of the window",
                )

    def apply(self, state: TableState, moment: Moment) -> None:
        known = connection_of(state, self.connection)
        if known is not None:
            advance(state, known, (self.splits, self.windows), self.rules, moment)
