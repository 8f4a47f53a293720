"""Feeds of a file at work, which may be applied to the lake at the same moment."""

from __future__ import annotations

import pyarrow as pa

from lakebed.bootstrap.app import App
from lakebed.bootstrap.feeds.file_definitions import definitions_in, refuse_defined
from lakebed.bootstrap.feeds.pipelines import running_feeds
from lakebed.config.feeds import FeedFile
from lakebed.feeds.known_definitions import read_definitions
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
    tables = app.catalog.list()
    feeds = list(running_feeds(app, *definitions_in(file)))
    if app.catalog.list() == tables:
        return feeds
    try:  # who applies it and saw no landing table gives the feed another id: it is planned anew
        registry.lift(registry.number() + 1)
        refuse_defined(read_definitions(registry), file)
    except Exception:  # whatever it was: nothing is to hold the sources
        for one in feeds:
            one.pipeline.close()
        raise
    return feeds
