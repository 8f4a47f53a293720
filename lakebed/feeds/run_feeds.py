"""Runs feeds: takes what their sources have, one source split after the other.

A feed that fails is told and keeps no other waiting.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

import msgspec

from lakebed.errors import LakebedError
from lakebed.feeds.commit_round import RoundCommitted
from lakebed.feeds.pipeline import Pipeline
from lakebed.model.feeds.tallies import Tally
from lakebed.observe import events

BatchT = TypeVar("BatchT")


class RunningFeed(msgspec.Struct, Generic[BatchT], frozen=True):
    """A feed with all that it needs."""

    name: str
    pipeline: Pipeline[BatchT]


class FeedDone(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of running a feed.

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


def run_feeds(
    feeds: Sequence[RunningFeed[BatchT]],
    *,
    should_stop: Callable[[], bool] = lambda: False,
    on_progress: Callable[[FeedDone], None] = lambda _: None,
    failed: Callable[[FeedDone, LakebedError], None] = lambda _done, _error: None,
) -> list[FeedDone]:
    """Take all records that there are now; each feed until it has none or fails.

    should_stop: asked between turns.
    on_progress: called after each commit, with all that its feed has taken so far.
    failed: called with each feed that fails, and why.
    """
    return [_run(feed, should_stop, on_progress, failed) for feed in feeds]


def _run(
    feed: RunningFeed[BatchT],
    should_stop: Callable[[], bool],
    on_progress: Callable[[FeedDone], None],
    failed: Callable[[FeedDone, LakebedError], None],
) -> FeedDone:
    pipeline = feed.pipeline
    done = FeedDone(name=feed.name, table=pipeline.table.name, commits=0, tally=Tally())
    try:
        pipeline.look_again()
        is_draining = False
        while not should_stop():
            turn = pipeline.turn(is_draining=is_draining)
            if turn.committed is not None:
                done = _and(done, turn.committed)
                on_progress(done)
            if pipeline.is_idle:
                break
            if pipeline.rest():  # or it would commit each few records, and ask all the time
                continue
            is_draining = not turn.has_read and turn.committed is None and not is_draining
    except LakebedError as error:
        pipeline.forget()
        done = msgspec.structs.replace(done, code=error.code(), reason=str(error))
        events.emit(
            events.FEED_FAILED,
            feed=feed.name,
            table=done.table,
            code=done.code,
            reason=done.reason,
        )
        failed(done, error)
    return done


def _and(done: FeedDone, committed: RoundCommitted) -> FeedDone:
    return msgspec.structs.replace(
        done, commits=done.commits + 1, tally=done.tally.plus(committed.tally)
    )
