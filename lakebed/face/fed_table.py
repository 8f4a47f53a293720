"""Shows callers of the library what a table knows of the feeds that fill it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakebed.bootstrap.open_lake import OpenLake

if TYPE_CHECKING:
    from lakebed.bootstrap.app import App
    from lakebed.feeds.operating.position_admin import KeptPosition, KnownGap, LedgerRow
    from lakebed.feeds.operating.window_listing import FeedTime, KnownWindow
    from lakebed.statestore.open_table import OpenTable


class FedTable(OpenLake):
    """A table that feeds may fill. feed: everywhere the id of a feed's connection, as `positions`
    gives it."""

    def __init__(self, app: App, opened: OpenTable) -> None:
        super().__init__(app)
        self._opened = opened

    def positions(self, *, feed: str | None = None) -> list[KeptPosition]:
        """Return how far each source split was taken, by feed and source split.

        feed: only of this one.

        Raises:
            InvalidError: the table knows no such feed.
        """
        from lakebed.feeds.operating.position_admin import positions

        return positions(self._opened, feed)

    def reset_position(
        self,
        feed: str,
        source_split: str,
        *,
        to: int | str,
        expects: int | str | None,
        who: str,
        why: str,
    ) -> int:
        """Let a source split be read from another record on. A batch that is under way is refused,
        and its worker goes on there. Rows stay. Returns the number of the log entry, which keeps
        who did it and why.

        to: the next record; hexadecimal digits where the source does not count them.
        expects: what `positions` says is next; None: there is no position.

        Raises:
            InvalidError: no such feed, or no reason; nothing was changed.
            PositionMovedError: the feed has gone on since; nothing was changed.
        """
        from lakebed.feeds.operating.position_admin import OperatorMove, reset_position

        move = OperatorMove(feed=feed, source_split=source_split, expects=expects, who=who, why=why)
        return reset_position(self._opened, move, to=to)

    def delete_position(
        self, feed: str, source_split: str, *, expects: int | str, who: str, why: str
    ) -> int:
        """Forget a source split; if the source has it, it is read from its beginning. Rows stay.
        Returns the number of the log entry. Raises as `reset_position`.

        expects: what `positions` says is next; `"damaged"`: it cannot be read.
        """
        from lakebed.feeds.operating.position_admin import OperatorMove, delete_position

        move = OperatorMove(feed=feed, source_split=source_split, expects=expects, who=who, why=why)
        return delete_position(self._opened, move)

    def ledger(self, *, feed: str | None = None) -> list[LedgerRow]:
        """Return what became of records, by feed, source split and hour of log time.

        feed: only of this one.

        Raises:
            InvalidError: the table knows no such feed.
        """
        from lakebed.feeds.operating.position_admin import ledger

        return ledger(self._opened, feed)

    def watermarks(self, *, feed: str | None = None) -> list[FeedTime]:
        """Return up to which event time the records of feeds have been taken, by feed. A watermark
        never goes back.

        feed: only of this one.

        Raises:
            InvalidError: the table knows no such feed.
        """
        from lakebed.feeds.operating.window_listing import watermarks

        return watermarks(self._opened, feed)

    def windows(
        self, *, feed: str | None = None, sealed: bool | None = None, after: int | None = None
    ) -> list[KnownWindow]:
        """Return windows of event time, by feed and end. The rows of a sealed window are all there
        as of its number, but for late ones.

        feed: only of this one.
        sealed: only windows that are sealed, or that are not.
        after: only those that end later than this event time, microseconds since 1970.

        Raises:
            InvalidError: the table knows no such feed.
        """
        from lakebed.feeds.operating.window_listing import windows

        return windows(self._opened, feed, sealed=sealed, after=after)

    def gaps(self, *, feed: str | None = None) -> list[KnownGap]:
        """Return records that sources no longer had when they were asked for, the newest thousand
        of each feed.

        feed: only of this one.

        Raises:
            InvalidError: the table knows no such feed.
        """
        from lakebed.feeds.operating.position_admin import gaps

        return gaps(self._opened, feed)
