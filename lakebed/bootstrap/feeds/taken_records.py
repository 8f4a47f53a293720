"""Finds what became of records of feeds, for callers of the library."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from lakebed.bootstrap.feeds.landing import LandingVerified, find_record, landed, verify_landing
from lakebed.bootstrap.feeds.segments import (
    FeedSegments,
    check_droppable,
    segments_counted,
    segments_dropped,
    segments_listed,
    segments_of_feeds,
    segments_shown,
)
from lakebed.bootstrap.open_lake import OpenLake

if TYPE_CHECKING:
    from lakebed.errors import LakebedError
    from lakebed.landing.find_record import RecordInTable
    from lakebed.landing.landing_listing import LandedRecord
    from lakebed.landing.push.waiting_segments import WaitingSegment, WaitingSegments


class TakenRecords(OpenLake):
    """Records that feeds took, or are about to take."""

    def where(self, feed: str, source_split: str, position: int) -> list[RecordInTable]:
        """Return what became of a record: which log entries took its position, and which files and
        row groups hold it now. First in the landing table, then in the table of each connection,
        where its rows say which record they are of (`lineage = true`).

        Raises:
            InvalidError: there is no such feed. TableMissingError: it has no table yet.
            VersionExpiredError: files were merged meanwhile; ask again.
        """
        return find_record(self._app, feed, source_split, position)

    def landed(
        self,
        feed: str,
        source_split: str | None = None,
        *,
        begin: int = 0,
        end: int | None = None,
        limit: int = 50,
        with_values: bool = False,
    ) -> Iterator[LandedRecord]:
        """Yield the first records of a feed as they were landed, by source split and position. The
        table `FEED_landing` has them all.

        source_split: only of this one.
        begin, end: positions; the end lies outside.
        limit: records at the most.
        with_values: with their values, keys and headers.

        Raises:
            InvalidError: there is no such feed or source split. TableMissingError: nothing was
                landed.
        """
        return landed(
            self._app, feed, source_split, (begin, end), limit=limit, with_values=with_values
        )

    def verify_landing(self, feed: str) -> LandingVerified:
        """Compare what commits of a landing table say that they took with the rows that are there.

        Raises:
            InvalidError: there is no such feed. TableMissingError: nothing was landed.
        """
        return verify_landing(self._app, feed)

    def segments(self) -> list[FeedSegments]:
        """Return what was pushed into feeds and waits to be landed, by feed; also of feeds that
        were dropped, by their ids."""
        return segments_of_feeds(self._app)

    def segments_of(self, feed: str, *, limit: int = 50) -> Iterator[WaitingSegment]:
        """Yield segments of a feed that wait, by their names, which are by chance.

        feed: its name, or its id.
        limit: at the most.

        Raises:
            InvalidError: there is no such feed.
        """
        return segments_listed(self._app, feed, limit)

    def waiting_records(
        self,
        feed: str,
        *,
        limit: int = 50,
        failed: Callable[[str, LakebedError], None] = lambda _segment, _error: None,
    ) -> Iterator[LandedRecord]:
        """Yield records of segments that wait: their source split is the segment, their position
        counts in it.

        feed: its name, or its id.
        limit: records at the most.
        failed: called with a segment that cannot be read, and why; others come.

        Raises:
            InvalidError: there is no such feed.
        """
        return segments_shown(self._app, feed, limit, failed)

    def drop_segments(
        self, feed: str, *, although_defined: bool = False, dry_run: bool = False
    ) -> WaitingSegments:
        """Remove what was pushed into a feed and waits, for good. Returns what was removed.

        feed: its name, or its id. Let no receiver of it run: it would put more.
        although_defined: also of a feed that the lake defines. Senders have heard that it is kept.
        dry_run: remove nothing, and say what would be.

        Raises:
            InvalidError: there is no such feed, or the lake defines it.
        """
        if dry_run:
            check_droppable(self._app, feed, although_defined=although_defined)
            return segments_counted(self._app, feed)
        return segments_dropped(self._app, feed, although_defined=although_defined)
