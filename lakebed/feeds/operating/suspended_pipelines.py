"""Ends pipelines of a worker, and keeps what is needed of those that are suspended."""

from __future__ import annotations

from collections.abc import Collection
from typing import Generic, TypeVar

from lakebed.errors import LakebedError
from lakebed.feeds.pipeline import Pipeline
from lakebed.observe import events

BatchT = TypeVar("BatchT")

DRAINS_MAX = 5
"""Rounds that a pipeline may be refused while it drains: then what it holds is dropped."""
SUSPENDED_SECONDS = 600.0
"""Seconds that a worker keeps the source splits of a pipeline that is suspended."""


def end(pipeline: Pipeline[BatchT], feed: str) -> None:
    """Commit what a pipeline holds, as far as that works, and close its source. It keeps what it
    owns. feed: its name, for events."""
    try:
        for _ in range(DRAINS_MAX):
            if pipeline.turn(is_draining=True).committed is None:
                break
    except LakebedError as error:  # it is read again by who comes next
        events.emit(events.FEED_DROPPED, feed=feed, code=error.code())
    try:
        pipeline.close()
    except LakebedError as error:  # nobody reads it any more
        events.emit(events.FEED_DROPPED, feed=feed, code=error.code())


def release(pipeline: Pipeline[BatchT], feed: str, position: str = "") -> None:
    """Give up what a pipeline owns.

    feed: its name, for events.
    position: as of `Pipeline.release`.
    """
    try:
        pipeline.release(position)
    except LakebedError as error:  # others take it over when this worker is silent
        events.emit(events.FEED_DROPPED, feed=feed, code=error.code())


class SuspendedPipelines(Generic[BatchT]):
    """Pipelines of one worker that have ended, and own their source splits for a while yet: no
    other worker takes these meanwhile. Keys are those of `WantedPipeline`."""

    def __init__(self) -> None:
        self._since: dict[tuple[str, str, int], tuple[float, Pipeline[BatchT]]] = {}

    def keep(self, key: tuple[str, str, int], pipeline: Pipeline[BatchT], now: float) -> None:
        """Keep what a pipeline owns. now: seconds of the monotonic clock."""
        self._since[key] = now, pipeline

    def let_go(self, keys: Collection[tuple[str, str, int]], now: float) -> None:
        """Give up what is kept for too long, and all but that of `keys`. What another pipeline has
        claimed since stays its own."""
        for key, (since, pipeline) in list(self._since.items()):
            if key not in keys or now - since >= SUSPENDED_SECONDS:
                del self._since[key]
                release(pipeline, key[1])
