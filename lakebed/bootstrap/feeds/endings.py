"""Makes tables forget connections, by the services of a lake."""

from __future__ import annotations

from functools import partial

from lakebed.bootstrap.app import App
from lakebed.config.feeds import landing_table_name, quarantine_name
from lakebed.feeds.known_definitions import KnownDefinitions
from lakebed.feeds.operating.end_connections import EndConnections, Key
from lakebed.model.feeds.endings import KnownIn
from lakebed.model.feeds.positions import connection_id


def end_connections(app: App, *, may_cross_out: bool = True) -> EndConnections:
    """Return what lets tables forget connections. may_cross_out: as `EndConnections`."""
    return EndConnections(
        registry=app.feeds.definitions,
        known_in=partial(known_in, app),
        find_table=app.catalog.find_id,
        may_cross_out=may_cross_out,
    )


def known_in(app: App, known: KnownDefinitions, key: Key) -> tuple[KnownIn, ...]:
    """Return where a feed that is landed, or a connection, may be known: in the tables that it
    fills, and in the quarantine of its feed."""
    kind, name = key
    pairs: list[tuple[str, str]] = []
    if kind == "feed":
        pairs = [(known.feed(name).id, landing_table_name(name))]
    for one in known.connections(name) if kind == "connection" else ():
        pairs += [(one.id, one.connection.table), (one.id, quarantine_name(one.feed.name))]
    tables = {str(entry.name): entry.id for entry in app.catalog.list()} if pairs else {}
    return tuple(
        KnownIn(connection_id(id_), tables[table]) for id_, table in pairs if table in tables
    )
