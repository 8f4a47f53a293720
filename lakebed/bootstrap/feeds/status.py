"""Reports how feeds of a lake do, by its definitions, tables and leases."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial

from lakebed.bootstrap.app import App
from lakebed.bootstrap.feeds.pushed_feeds import pushed_segments
from lakebed.config.feed_sources import PushFeed, SocketFeed
from lakebed.config.feeds import landing_table_name
from lakebed.errors import LakebedError
from lakebed.feeds.known_definitions import KnownDefinitions, is_landed, read_definitions
from lakebed.feeds.operating.feed_status import FeedsStatus, Pipe, feeds_status
from lakebed.feeds.operating.worker_reports import listen
from lakebed.landing.push.waiting_segments import WaitingSegments, waiting_segments
from lakebed.model.feeds.positions import connection_id
from lakebed.model.names import table_name


def status_of_feeds(app: App, feed: str | None, listen_seconds: float) -> FeedsStatus:
    """Return how a feed does, or all. Raises: InvalidError: there is none of that name."""
    known = read_definitions(app.feeds.definitions)
    names = sorted(known.file.feeds) if feed is None else [known.feed(feed).feed.name]
    pipes = {name: _pipes(app, known, name) for name in names}
    pushed = dict(_pushed(app, known, names))
    return feeds_status(known, pipes, listen(app.feeds.leases, app.clock, listen_seconds), pushed)


def _pushed(
    app: App, known: KnownDefinitions, names: Sequence[str]
) -> Iterator[tuple[str, WaitingSegments]]:
    """Yield what waits of feeds into which records are pushed, as far as the store says."""
    for name in names:
        feed = known.feed(name)
        if isinstance(feed.feed.source, PushFeed | SocketFeed):
            with suppress(LakebedError):
                yield name, waiting_segments(pushed_segments(app.objects, feed), app.clock.now())


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
