"""Definitions of feeds, put together from the services of a lake."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

from lakebed.bootstrap.app import App
from lakebed.bootstrap.feeds.custom_sources import installed
from lakebed.bootstrap.feeds.decoders import TableOf, check_decoder
from lakebed.bootstrap.feeds.endings import end_connections
from lakebed.bootstrap.feeds.pipelines import id_of
from lakebed.bootstrap.feeds.policies import check_policy
from lakebed.bootstrap.feeds.segments import waits_in_file
from lakebed.config.definitions.connections import DefinedConnection
from lakebed.config.definitions.custom_sources import CustomFeed
from lakebed.config.definitions.toml_fields import at_of
from lakebed.config.feed_sources import PushFeed, SocketFeed
from lakebed.config.feeds import Feed, FeedFile, landing_table_name
from lakebed.config.policies import Policy
from lakebed.decoding.routing import check_route
from lakebed.errors import InvalidError, TableMissingError
from lakebed.feeds.apply_definitions import ApplyDefinitions, IdFromFile
from lakebed.feeds.drop_definitions import DropDefinitions
from lakebed.feeds.lifecycle import FeedLifecycle
from lakebed.feeds.operating.end_connections import end_unknown
from lakebed.feeds.operating.flush_feed import FlushFeed
from lakebed.feeds.operating.position_admin import newest_state
from lakebed.model.feeds.definitions import DefinitionKind
from lakebed.model.names import ConnectionId, TableName, table_name
from lakebed.model.predicates.language import checked_predicate
from lakebed.model.predicates.text import predicate_from_text
from lakebed.statestore.open_table import OpenTable
from lakebed.statestore.table_state.feed_records import connection_of, positions_of

_RUN_FILE = "run it from its file on, or "
_FILE_ENDED = "its file does not run any more either, as tables have ended it: "


def apply_definitions(app: App) -> ApplyDefinitions:
    """Return what applies files of feeds."""
    return ApplyDefinitions(
        registry=app.feeds.definitions,
        new_id=lambda: f"{app.rng.getrandbits(128):032x}",
        check_connection=partial(_check_connection, app),
        check_feed=_check_feed,
        ask_table=partial(_id_from_file, app),
        end_in_tables=partial(_end_routed, app),
        require_forgotten=end_connections(app).require,
    )


def drop_definitions(app: App) -> DropDefinitions:
    """Return what drops definitions."""
    return DropDefinitions(app.feeds.definitions, end_connections(app))


def feed_lifecycle(app: App) -> FeedLifecycle:
    """Return what starts and stops feeds."""
    return FeedLifecycle(app.feeds.definitions)


def flush_feed(app: App) -> FlushFeed:
    """Return what lets workers commit what they hold of a feed."""
    return FlushFeed(app.feeds.definitions, app.feeds.leases, app.clock)


def _id_from_file(
    app: App, kind: DefinitionKind, name: str, file: FeedFile, feed_ids: Mapping[str, str]
) -> IdFromFile | None:
    """Return what a feed that lands, or a connection, is called when it is run from a file.
    feed_ids: as `AskTable`.

    Raises:
        InvalidError: it was run from a file, and cannot go on there.
    """
    if kind == "policy":
        return None
    if kind == "connection" and file.connections[name].route:
        _refuse_routed_before(app, file.connections[name])
        return None
    feed = file.feeds[name if kind == "feed" else file.connections[name].feed]
    is_pushed = isinstance(feed.source, PushFeed | SocketFeed)
    if kind == "feed":
        if is_pushed and waits_in_file(app, name):
            raise _pushed_before(name)
        table = landing_table_name(name)
    elif feed.source.is_ordered or _lands_as_in_file(app, feed, feed_ids):
        table = table_name(file.connections[name].table)
    else:
        return None  # its positions in the file count what another id has landed
    found = _found_as(app, kind, name, table, feed.version)
    if found is None or (is_pushed and not found.goes_on):
        return None  # what is pushed waits below the id: receivers of a file put elsewhere
    if kind == "feed" and is_pushed:
        raise _pushed_before(name)
    return found


def _lands_as_in_file(app: App, feed: Feed, feed_ids: Mapping[str, str]) -> bool:
    """Return whether a feed has the id in its landing table that it has when it is run from a
    file."""
    try:
        table = app.catalog.find(landing_table_name(feed.name))
    except TableMissingError:
        return False
    return feed_ids.get(feed.name) == id_of("", b"feed", feed.name, table)


def _found_as(
    app: App, kind: DefinitionKind, name: str, table_: TableName, version: int
) -> IdFromFile | None:
    """Return what one is called in its table when it is run from a file. None: there is no table,
    or it has forgotten one of that id. version: that the file says."""
    try:
        table = app.catalog.find(table_)
    except TableMissingError:
        return None
    id_ = id_of("", kind.encode(), name, table)
    with newest_state(table) as state:
        known = connection_of(state, id_)
    if known is None:
        return IdFromFile(id_, version, goes_on=False)
    return None if known.has_ended else IdFromFile(id_, known.version, goes_on=True)


def _refuse_routed_before(app: App, connection: DefinedConnection) -> None:
    """Refuse a route that was run from a file: its tables know it by ids of the file, so each
    record would be taken twice."""
    taken, has_ended = list[str](), False
    for table, id_ in _in_file(app, connection):
        with newest_state(table) as state:
            known, positions = connection_of(state, id_), any(positions_of(state, id_))
        has_ended = has_ended or (known is not None and known.has_ended)
        if known is not None and (positions or not known.has_ended):
            taken.append(table.name)
    if taken:
        raise _routed_before(connection, taken[0], _FILE_ENDED if has_ended else _RUN_FILE)


def _end_routed(app: App, connection: DefinedConnection) -> None:
    """End a route of a file that has committed nothing yet: a process may hold records, and the
    ids of a route that the lake defines are others. From then on tables refuse that process.

    Raises:
        InvalidError: it has committed something meanwhile.
    """
    for table, id_ in _in_file(app, connection) if connection.route else ():
        if not end_unknown(table, id_):
            _refuse_routed_before(app, connection)


def _in_file(app: App, connection: DefinedConnection) -> Iterator[tuple[OpenTable, ConnectionId]]:
    """Yield the tables of a route, with the ids by which they know it when it is run from a
    file."""
    for name in connection.tables:
        table = app.catalog.find(table_name(name))
        yield table, id_of("", b"connection", f"{connection.name}/{name}", table)


def _routed_before(connection: DefinedConnection, table: str, first: str) -> InvalidError:
    """Return why a route is refused. first: what its file does, or can do."""
    return InvalidError(
        "a route that was run from a file: its records would be taken twice",
        at=at_of("connection", connection.name),
        table=table,
        hint=f"{first}clear its tables `--from-start` and rename it",
    )


def _pushed_before(feed: str) -> InvalidError:
    return InvalidError(
        "records were pushed into it while a file defined it: what waits would be lost",
        at=at_of("feed", feed),
        hint="give it another name, and end the receivers that run it from the file",
    )


def _check_feed(feed: Feed) -> None:
    """Check that the adaptor of a feed's source is installed here. Raises: InvalidError: it is not,
    with the nearest."""
    if isinstance(feed.source, CustomFeed):
        installed(feed.source, at_of("feed", feed.name, "source"))


def _check_connection(app: App, connection: DefinedConnection, feed: Feed, policy: Policy) -> None:
    """Check that its tables are there, and that decoder, route and columns fit them.

    Raises:
        TableMissingError, InvalidError: they are not, or do not; with the nearest.
    """
    at, route = at_of("connection", connection.name), connection.routing
    schemas = {
        name: _checked_table(app, connection, name, policy).schema for name in connection.tables
    }
    settings = feed.decoder_settings
    if settings is not None:
        columns, decoder_at = (
            connection.columns_settings(policy),
            at_of("feed", feed.name, "decoder"),
        )
        if route is not None:
            check_route(settings, columns, route, list(schemas.values()), at=at)
        for name, schema in schemas.items():
            table = TableOf(schema, route, name)
            check_decoder(app, settings, columns, table, at=at, decoder_at=decoder_at)
    for name, schema in schemas.items() if connection.where else ():
        try:
            checked_predicate(predicate_from_text(connection.where), schema)
        except InvalidError as error:
            facts = {fact: value for fact, value in error.facts.items() if fact != "at"}
            facts |= {} if route is None else {"table": name}
            raise InvalidError(error.message, at=f"{at}.where", hint=error.hint, **facts) from None


def _checked_table(app: App, connection: DefinedConnection, name: str, policy: Policy) -> OpenTable:
    """Return one of the tables of a connection. Raises: as `_check_connection`."""
    at, route = at_of("connection", connection.name), connection.routing
    try:
        table = app.catalog.find(table_name(name))
    except TableMissingError as error:
        hint = error.hint or "create it first: `lakebed table create`"
        where = "table" if route is None else f"route.{route.path_of(name)}"
        raise TableMissingError(error.message, at=f"{at}.{where}", table=name, hint=hint) from None
    check_policy(policy, table, at=f"{at}.policy")
    return table
