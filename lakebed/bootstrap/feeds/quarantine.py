"""Quarantine tables of feeds, looked at by the names of feeds and connections."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress

import msgspec

from lakebed.bootstrap.app import App
from lakebed.bootstrap.feeds.pipelines import target_of
from lakebed.config.feeds import QUARANTINE_SUFFIX, quarantine_name
from lakebed.errors import InvalidError, TableMissingError, did_you_mean
from lakebed.feeds.known_definitions import (
    ConnectionDefinition,
    KnownDefinitions,
    read_definitions,
)
from lakebed.feeds.operating.position_admin import positions_in
from lakebed.landing.quarantine_listing import QuarantinedRecord, quarantined_records
from lakebed.landing.quarantine_source import KeptRange, kept_ranges
from lakebed.landing.quarantine_table import QUARANTINE_SCHEMA
from lakebed.model.feeds.positions import connection_id
from lakebed.model.names import ConnectionId
from lakebed.statestore.open_table import OpenTable

LIMIT_MAX = 1_000_000
_ID = re.compile("[0-9a-f]{32,64}")


def quarantined(
    app: App, feed: str, connection: str | None, *, limit: int, with_values: bool
) -> Iterator[QuarantinedRecord]:
    """Yield the first records in quarantine of a feed, also of one that only a file defines. Those
    that a replay has taken are left out, but for a feed that the lake does not define.

    connection: only of this one: its name, or its id, where it is not defined any more.

    Raises:
        InvalidError: no such feed or connection; a table of that name is another one.
    """
    if not 1 <= limit <= LIMIT_MAX:
        raise InvalidError("not a limit", limit=limit, hint=f"give 1 to {LIMIT_MAX:,}")
    known = read_definitions(app.feeds.definitions)
    id_ = None if connection is None else _id_of(known, feed, connection)
    try:
        table = found_quarantine(app, feed)
    except TableMissingError:  # nothing was bad yet
        return iter(())
    connections = known.connections_of(feed) if feed in known.file.feeds else []
    names = {one.id: one.connection.name for one in connections}
    kept = dict(_kept(app, connections))
    found = quarantined_records(app.query, table, id_, kept, limit=limit, with_values=with_values)
    return (
        msgspec.structs.replace(one, connection=names.get(one.connection, one.connection))
        for one in found
    )


def found_quarantine(app: App, feed: str) -> OpenTable:
    """Return the quarantine table of a feed, also of one that only a file defines.

    Raises:
        InvalidError: no such feed; a table of that name is another one.
        TableMissingError: nothing was ever bad.
    """
    try:
        table = app.catalog.find(quarantine_name(feed))
    except TableMissingError:
        known = read_definitions(app.feeds.definitions)
        if feed in known.file.feeds:
            raise
        raise _no_feed(app, known, feed) from None
    if table.schema.fields != QUARANTINE_SCHEMA.fields:
        raise InvalidError(
            "a table of that name is no quarantine table: it has other fields",
            table=table.name,
            hint="rename that table: a feed makes its quarantine table at its first bad record",
        )
    return table


def _kept(
    app: App, connections: Sequence[ConnectionDefinition]
) -> Iterator[tuple[tuple[str, str], KeptRange]]:
    """Yield which rows count, by connection and source split, where there were replays."""
    for definition in connections:
        with suppress(TableMissingError):
            table, to_table = target_of(app, definition)
            for split, kept in kept_ranges(positions_in(table, to_table.id)).items():
                yield (to_table.id, split), kept


def _id_of(known: KnownDefinitions, feed: str, connection: str) -> ConnectionId:
    if _ID.fullmatch(connection):
        return connection_id(connection)
    found = known.connections_of(feed) if feed in known.file.feeds else []
    ids = {one.connection.name: one.id for one in found}
    if connection not in ids:
        hint = did_you_mean(connection, ids, what="connection")
        raise InvalidError(
            "the feed has no connection of this name", connection=ascii(connection)[:80], hint=hint
        )
    return connection_id(ids[connection])


def _no_feed(app: App, known: KnownDefinitions, feed: str) -> InvalidError:
    tables = [entry.name for entry in app.catalog.list() if entry.name.endswith(QUARANTINE_SUFFIX)]
    names = {*known.file.feeds, *(name.removesuffix(QUARANTINE_SUFFIX) for name in tables)}
    hint = did_you_mean(feed, sorted(names), what="feed")
    return InvalidError("no feed has this name", feed=ascii(feed)[:80], hint=hint)
