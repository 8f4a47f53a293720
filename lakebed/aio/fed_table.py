"""The async twin of `lakebed.face.fed_table`.

Made by `make docs` from `lakebed/face/fed_table.py`; change it there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lakebed.aio.calls import Twin
from lakebed.face.fed_table import FedTable as SyncFedTable

if TYPE_CHECKING:
    from lakebed.feeds.operating.position_admin import KeptPosition, KnownGap, LedgerRow
    from lakebed.feeds.operating.window_listing import FeedTime, KnownWindow


class FedTable(Twin):
    """A table that feeds may fill. feed: everywhere the id of a feed's connection, as `positions`
    gives it.
    """

    _sync: SyncFedTable

    async def positions(self, *, feed: str | None = None) -> list[KeptPosition]:
        """Return how far each source split was taken, by feed and source split.

        feed: only of this one.

        Raises:
            InvalidError: the table knows no such feed.
        """
        return await self._calls.run(lambda: self._sync.positions(feed=feed))

    async def reset_position(
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
        return await self._calls.run(
            lambda: self._sync.reset_position(
                feed, source_split, to=to, expects=expects, who=who, why=why
            )
        )

    async def delete_position(
        self, feed: str, source_split: str, *, expects: int | str, who: str, why: str
    ) -> int:
        """Forget a source split; if the source has it, it is read from its beginning. Rows stay.
        Returns the number of the log entry. Raises as `reset_position`.

        expects: what `positions` says is next; `"damaged"`: it cannot be read.
        """
        return await self._calls.run(
            lambda: self._sync.delete_position(
                feed, source_split, expects=expects, who=who, why=why
            )
        )

    async def ledger(self, *, feed: str | None = None) -> list[LedgerRow]:
        """Return what became of records, by feed, source split and hour of log time.

        feed: only of this one.

        Raises:
            InvalidError: the table knows no such feed.
        """
        return await self._calls.run(lambda: self._sync.ledger(feed=feed))

    async def watermarks(self, *, feed: str | None = None) -> list[FeedTime]:
        """Return up to which event time the records of feeds have been taken, by feed. A watermark
        never goes back.

        feed: only of this one.

        Raises:
            InvalidError: the table knows no such feed.
        """
        return await self._calls.run(lambda: self._sync.watermarks(feed=feed))

    async def windows(
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
        return await self._calls.run(
            lambda: self._sync.windows(feed=feed, sealed=sealed, after=after)
        )

    async def gaps(self, *, feed: str | None = None) -> list[KnownGap]:
        """Return records that sources no longer had when they were asked for, the newest thousand
        of each feed.

        feed: only of this one.

        Raises:
            InvalidError: the table knows no such feed.
        """
        return await self._calls.run(lambda: self._sync.gaps(feed=feed))
