"""Feeds of a file at work, which may be applied to the lake at the same moment."""

from __future__ import annotations

import pyarrow as pa

from lakebed.bootstrap.app import App
from lakebed.bootstrap.feeds.file_definitions import definitions_in, refuse_defined
from lakebed.bootstrap.feeds.pipelines import running_feeds
from lakebed.config.feeds import FeedFile
from lakebed.feeds.known_definitions import is_landed, read_definitions
from lakebed.feeds.run_feeds import RunningFeed


def feeds_of_file(app: App, file: FeedFile) -> list[RunningFeed[pa.RecordBatch]]:
    """Return the feeds of a file, each at work on its own, with their landing tables.

    Raises:
        InvalidError: as `definitions_in`, `refuse_defined` and `running_feeds`.
        TableMissingError: a connection's table is not there.
        UnavailableError, UnknownOutcomeError: try again.
    """
    registry = app.feeds.definitions
    refuse_defined(read_definitions(registry), file)
    feeds, connections = definitions_in(file)
    running: list[RunningFeed[pa.RecordBatch]] = []
    try:
        running.extend(running_feeds(app, feeds, connections))
        if any(is_landed(feed, connections) for feed in feeds):
            # Who applies it and saw no landing table gives the feed another id. That is planned
            # anew, whichever process of this file has made the table.
            registry.lift(registry.number() + 1)
            refuse_defined(read_definitions(registry), file)
    except Exception:  # whatever it was: nothing is to hold the sources
        for one in running:
            one.pipeline.close()
        raise
    return running
