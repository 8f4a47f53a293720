"""Lists how far the feeds of a table have come in event time, and their windows, for those who wait
for one to be complete."""

from __future__ import annotations

from itertools import islice

import msgspec

from lakebed.feeds.operating.position_admin import known_feeds, newest_state
from lakebed.model.names import MICROS_PER_SECOND, Micros, TransactionNumber
from lakebed.statestore.open_table import OpenTable
from lakebed.statestore.table_state.window_records import watermark_of, windows_of

WINDOWS_MAX = 1_000_000
"""Windows that are listed at once, as many as a feed may have open."""


class KnownWindow(msgspec.Struct, frozen=True, kw_only=True):
    """Rows of a feed in a window of event time. Times are microseconds since 1970.

    start, end: the end lies outside; None: the window stands for all older ones.
    rows: that were stored.
    late: that came when it was sealed; those that were accepted are among the rows.
    sealed: number of the log entry that sealed it; None: it is open.
    revision: 1 as it was sealed; each commit with late rows that were accepted adds one.
    number: of the entry that made the revision: as of it all rows are there.
    """

    feed: str
    start: Micros | None
    end: Micros | None
    rows: int
    late: int
    sealed: TransactionNumber | None
    revision: int
    number: TransactionNumber | None


class FeedTime(msgspec.Struct, frozen=True, kw_only=True):
    """The progress of a feed in event time, microseconds since 1970; None: not known.

    watermark: all records before it have been taken, as far as can be known. It never goes back.
    sealed: windows that end there, or before, are sealed.
    """

    feed: str
    watermark: Micros | None
    sealed: Micros | None


def watermarks(table: OpenTable, feed: str | None = None) -> list[FeedTime]:
    """Return how far feeds have come in event time, by feed. Raises: InvalidError: the table knows
    no such feed."""
    with newest_state(table) as state:
        found = [
            (known.id, watermark_of(state, known)) for known in known_feeds(state, table, feed)
        ]
    return [FeedTime(feed=id_, watermark=at.time, sealed=at.sealed) for id_, at in found]


def windows(
    table: OpenTable,
    feed: str | None = None,
    *,
    sealed: bool | None = None,
    after: int | None = None,
    windows_max: int = WINDOWS_MAX,
) -> list[KnownWindow]:
    """Return windows of feeds, by feed and end.

    sealed: only those that are, or are not.
    after: only those that end later than this event time.

    Raises:
        InvalidError: the table knows no such feed.
    """
    with newest_state(table) as state:
        found = (
            KnownWindow(
                feed=known.id,
                start=one.start,
                end=None if one.start is None else _end(one.start, one.seconds),
                rows=one.rows,
                late=one.late,
                sealed=one.sealed,
                revision=one.revision,
                number=one.number,
            )
            for known in known_feeds(state, table, feed)
            for one in windows_of(state, known, sealed=sealed, after=after)
        )
        return list(islice(found, windows_max))


def _end(start: Micros, seconds: int) -> Micros:
    return Micros(start + seconds * MICROS_PER_SECOND)
