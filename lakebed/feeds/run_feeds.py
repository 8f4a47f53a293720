"""Runs feeds: takes what their sources have, one source split after the other.

A feed that fails is told and keeps no other waiting.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

import msgspec

from lakebed.errors import LakebedError
from lakebed.feeds.feed_records import FeedConnection, FeedRecords
from lakebed.model.feeds.tallies import Tally
from lakebed.observe import events
from lakebed.ports.record_source import RecordSource
from lakebed.statestore.open_table import OpenTable

BatchT = TypeVar("BatchT")


class RunningFeed(msgspec.Struct, Generic[BatchT], frozen=True):
    """A feed with all that it needs.

    bytes_max: of records that are committed together.
    """

    name: str
    table: OpenTable
    connection: FeedConnection
    source: RecordSource[BatchT]
    bytes_max: int


class FeedDone(msgspec.Struct, frozen=True, kw_only=True):
    """What a feed has taken.

    commits: log entries.
    code: of the error that stopped it; "": it has taken all that there was.
    reason: what the error says.
    """

    name: str
    table: str
    commits: int
    tally: Tally
    code: str = ""
    reason: str = ""


class RunFeeds(Generic[BatchT]):
    """Takes what is there, of several feeds."""

    def __init__(self, *, records: FeedRecords[BatchT]) -> None:
        self._records = records

    def run(
        self,
        feeds: Sequence[RunningFeed[BatchT]],
        *,
        should_stop: Callable[[], bool] = lambda: False,
        on_progress: Callable[[FeedDone], None] = lambda _: None,
        failed: Callable[[FeedDone, LakebedError], None] = lambda _done, _error: None,
    ) -> list[FeedDone]:
        """Take all records that there are now; each feed until it has none or fails.

        should_stop: asked between commits. on_progress: called after each, with all that its feed
        has taken so far. failed: called with each feed that fails, and why.
        """
        return [self._run(feed, should_stop, on_progress, failed) for feed in feeds]

    def _run(
        self,
        feed: RunningFeed[BatchT],
        should_stop: Callable[[], bool],
        on_progress: Callable[[FeedDone], None],
        failed: Callable[[FeedDone, LakebedError], None],
    ) -> FeedDone:
        done = FeedDone(name=feed.name, table=feed.table.name, commits=0, tally=Tally())
        try:
            for split in feed.source.splits():
                while not should_stop():
                    taken = self._records.step(
                        feed.table, feed.connection, feed.source, split, bytes_max=feed.bytes_max
                    )
                    if taken is None:
                        break
                    done = msgspec.structs.replace(
                        done, commits=done.commits + 1, tally=done.tally.plus(taken.tally)
                    )
                    on_progress(done)
        except LakebedError as error:
            done = msgspec.structs.replace(done, code=error.code(), reason=str(error))
            events.emit(
                events.FEED_FAILED,
                feed=feed.name,
                table=feed.table.name,
                code=done.code,
                reason=done.reason,
            )
            failed(done, error)
        return done
