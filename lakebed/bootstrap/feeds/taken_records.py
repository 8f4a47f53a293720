"""What became of records of feeds, as callers of the library ask for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from lakebed.bootstrap.feeds.landing import LandingVerified, find_record, landed, verify_landing
from lakebed.bootstrap.open_lake import OpenLake

if TYPE_CHECKING:
    from lakebed.landing.find_record import RecordInTable
    from lakebed.landing.landing_listing import LandedRecord


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
