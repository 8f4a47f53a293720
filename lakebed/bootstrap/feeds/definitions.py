"""Definitions of feeds, put together from the services of a lake."""

from __future__ import annotations

from functools import partial

from lakebed.bootstrap.app import App
from lakebed.bootstrap.feeds.policies import check_policy
from lakebed.config.feed_fields import at_of
from lakebed.config.feeds import DefinedConnection, Feed
from lakebed.config.policies import Policy
from lakebed.decoding.routing import check_route, table_decoder
from lakebed.errors import InvalidError, TableMissingError
from lakebed.feeds.apply_definitions import ApplyDefinitions
from lakebed.feeds.drop_definitions import DropDefinitions
from lakebed.feeds.lifecycle import FeedLifecycle
from lakebed.model.names import table_name
from lakebed.model.predicates.language import checked_predicate
from lakebed.model.predicates.text import predicate_from_text
from lakebed.statestore.open_table import OpenTable


def apply_definitions(app: App) -> ApplyDefinitions:
    """Return what applies files of feeds."""
    return ApplyDefinitions(
        registry=app.feeds.definitions,
        new_id=lambda: f"{app.rng.getrandbits(128):032x}",
        check_connection=partial(_check_connection, app),
    )


def drop_definitions(app: App) -> DropDefinitions:
    """Return what drops definitions."""
    return DropDefinitions(app.feeds.definitions)


def feed_lifecycle(app: App) -> FeedLifecycle:
    """Return what starts and stops feeds."""
    return FeedLifecycle(app.feeds.definitions)


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
        columns = connection.columns_settings(policy)
        if route is not None:
            check_route(settings, columns, route, list(schemas.values()), at=at)
        for name, schema in schemas.items():
            table_decoder(settings, columns, schema, route, name, at=at)
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
