"""Feeds of a lake, as callers of the library see them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from lakebed.bootstrap.feeds import running_feed
from lakebed.bootstrap.open_lake import OpenLake
from lakebed.config.feeds import feeds_of
from lakebed.feeds.run_feeds import run_feeds

if TYPE_CHECKING:
    from lakebed.errors import LakebedError
    from lakebed.feeds.run_feeds import FeedDone


class Feeds(OpenLake):
    """Feeds into tables of a lake, as text in TOML says them: a section `[feed.NAME]` each.

    Positions are in the tables, so any process may run them, and several at once. Landing tables
    are created where there are none.

    Raises:
        InvalidError: the text says what there is not; a table of that name is no landing table.
    """

    def __init__(self, lake: OpenLake, text: str) -> None:
        app = lake._app  # noqa: SLF001 - a lake's own face
        super().__init__(app)
        self._feeds = [running_feed(app, feed) for feed in feeds_of(text)]

    def run(
        self,
        *,
        should_stop: Callable[[], bool] = lambda: False,
        on_progress: Callable[[FeedDone], None] = lambda _: None,
        failed: Callable[[FeedDone, LakebedError], None] = lambda _done, _error: None,
    ) -> list[FeedDone]:
        """Take all records that there are now, each once. Returns what each feed has taken.

        should_stop: asked between commits.
        on_progress: called after each commit, with what its feed has taken so far.
        failed: called with each feed that failed, and why; others go on.
        """
        return run_feeds(
            self._feeds, should_stop=should_stop, on_progress=on_progress, failed=failed
        )
