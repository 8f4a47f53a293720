"""A tap of a feed, put together from its definitions. It makes no table and asks no lease."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from lakebed.bootstrap.app import App
from lakebed.bootstrap.feeds.file_definitions import definitions_in
from lakebed.bootstrap.feeds.pipelines import decoding_of, id_of, source_of
from lakebed.config.feeds import feed_file, landing_table_name
from lakebed.errors import InvalidError, TableMissingError, did_you_mean
from lakebed.feeds.known_definitions import ConnectionDefinition, FeedDefinition, read_definitions
from lakebed.feeds.operating.tap import Look, Tap, committed_positions, decoded_look, looked_at
from lakebed.landing.landing_source import LandingSource
from lakebed.model.feeds.positions import Position
from lakebed.model.names import ConnectionId, table_name
from lakebed.ports.record_source import RecordSource
from lakebed.statestore.open_table import OpenTable


def tap(
    app: App,
    feed: str | None,
    text: str | None,
    connection: str | None,
    *,
    from_start: bool,
) -> Tap:
    """Return a tap of a feed that the lake defines, or that a file does.

    feed: its name; None: the only one of the text.
    text: of a file; None: the lake's definitions count.
    connection: by which records are decoded; None: the only one; there is none: as they come.
    from_start: look from where a feed begins; else from what was committed.

    Raises:
        InvalidError: none of that name, or several and no name.
        TableMissingError: the connection's table, or a landing table that is read, is not there.
    """
    if text is None:
        known = read_definitions(app.feeds.definitions)
        feeds, connections = list(known.feeds()), []
        for one in feeds:
            connections += known.connections_of(one.feed.name)
    else:
        feeds, connections = definitions_in(feed_file(text))
    if feed is None and connection is not None and text is not None:
        feed = _of(connections, connection).feed.name
    chosen = _chosen(feeds, feed)
    of_feed = [one for one in connections if one.feed.name == chosen.feed.name]
    if connection is None and not of_feed:
        return _tap_of_feed(app, chosen, from_start=from_start)
    if connection is None and len(of_feed) > 1:
        hint = f"name one: --connection {', '.join(_names(of_feed))}"
        raise InvalidError("the feed has several connections", feed=chosen.feed.name, hint=hint)
    found = of_feed[0] if connection is None else _of(of_feed, connection)
    return _tap_of_connection(app, chosen, found, from_start=from_start)


def _tap_of_feed(app: App, definition: FeedDefinition, *, from_start: bool) -> Tap:
    feed = definition.feed
    if not feed.source.is_ordered:
        hint = f"to look would keep records from workers: query {feed.name}_landing"
        raise InvalidError("a source without order cannot be looked at", feed=feed.name, hint=hint)
    table: OpenTable | None = None
    begins: dict[str, Position] = {}
    try:
        table = app.catalog.find(landing_table_name(feed.name))
    except TableMissingError:  # nothing was landed yet
        pass
    else:
        begins = committed_positions(table, id_of(definition.id, b"feed", feed.name, table))
    return _tap(app, source_of(app, feed), looked_at, {} if from_start else begins)


def _tap_of_connection(
    app: App, definition: FeedDefinition, one: ConnectionDefinition, *, from_start: bool
) -> Tap:
    """Return a tap of what a connection reads: of a source without order, its landing table."""
    feed = one.feed
    table = app.catalog.find(table_name(one.connection.table))
    id_ = id_of(one.id, b"connection", one.connection.name, table)
    begins = {} if from_start else committed_positions(table, id_)
    look = decoded_look(decoding_of(app, one, id_, table.schema))
    source: RecordSource[pa.RecordBatch]
    if feed.source.is_ordered:
        source = source_of(app, feed)
    else:
        landing = app.catalog.find(landing_table_name(feed.name))
        landed_by: ConnectionId = id_of(definition.id, b"feed", feed.name, landing)
        source = LandingSource(landing, landed_by, app.query, app.logs.open(landing.id))
    return _tap(app, source, look, begins)


def _tap(
    app: App,
    source: RecordSource[pa.RecordBatch],
    look: Look,
    begins: dict[str, Position],
) -> Tap:
    return Tap(source, look, begins, app.clock)


def _chosen(feeds: Sequence[FeedDefinition], name: str | None) -> FeedDefinition:
    names = [one.feed.name for one in feeds]
    if name is None and len(feeds) == 1:
        return feeds[0]
    if name is None:
        hint = f"name a connection; there are the feeds {', '.join(names)}"
        raise InvalidError("not one feed", feeds=len(feeds), hint=hint)
    if name not in names:
        hint = did_you_mean(name, names, what="feed")
        raise InvalidError("no feed has this name", feed=ascii(name)[:80], hint=hint)
    return feeds[names.index(name)]


def _names(connections: Sequence[ConnectionDefinition]) -> Iterator[str]:
    return (one.connection.name for one in connections)


def _of(connections: Sequence[ConnectionDefinition], name: str) -> ConnectionDefinition:
    names = list(_names(connections))
    if name not in names:
        hint = did_you_mean(name, names, what="connection")
        raise InvalidError("no connection has this name", connection=ascii(name)[:80], hint=hint)
    return connections[names.index(name)]
