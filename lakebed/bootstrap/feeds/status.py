"""How feeds of a lake do, put together from its definitions, tables and leases."""

from __future__ import annotations

from functools import partial

from lakebed.bootstrap.app import App
from lakebed.config.feeds import landing_table_name
from lakebed.feeds.known_definitions import KnownDefinitions, is_landed, read_definitions
from lakebed.feeds.operating.feed_status import FeedsStatus, Pipe, feeds_status
from lakebed.feeds.operating.worker_reports import listen
from lakebed.model.feeds.positions import connection_id
from lakebed.model.names import table_name


def status_of_feeds(app: App, feed: str | None, listen_seconds: float) -> FeedsStatus:
    """Return how a feed does, or all. Raises: InvalidError: there is none of that name."""
    known = read_definitions(app.feeds.definitions)
    names = sorted(known.file.feeds) if feed is None else [known.feed(feed).feed.name]
    pipes = {name: _pipes(app, known, name) for name in names}
    return feeds_status(known, pipes, listen(app.feeds.leases, app.clock, listen_seconds))


def _pipes(app: App, known: KnownDefinitions, name: str) -> list[Pipe]:
    """Return the landing of a feed, if it has one, and its connections."""
    feed, connections = known.feed(name), known.connections_of(name)
    landing = landing_table_name(name)
    landed = [
        Pipe(
            kind="feed",
            name=name,
            version=feed.version,
            id=connection_id(feed.id),
            table=landing,
            failed=feed.failed,
            find=partial(app.catalog.find, landing),
        )
    ]
    return (landed if is_landed(feed, connections) else []) + [
        Pipe(
            kind="connection",
            name=one.connection.name,
            version=one.version,
            id=connection_id(one.id),
            table=one.connection.table,
            failed=one.failed,
            find=partial(app.catalog.find, table_name(one.connection.table)),
        )
        for one in connections
    ]
