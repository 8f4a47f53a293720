"""Definitions of feeds, put together from the services of a lake."""

from __future__ import annotations

from functools import partial

from lakebed.bootstrap.app import App
from lakebed.bootstrap.feeds.decoders import check_decoder
from lakebed.bootstrap.feeds.policies import check_policy
from lakebed.config.feed_fields import at_of
from lakebed.config.feeds import DefinedConnection, Feed
from lakebed.config.policies import Policy
from lakebed.errors import InvalidError, TableMissingError
from lakebed.feeds.apply_definitions import ApplyDefinitions
from lakebed.feeds.drop_definitions import DropDefinitions
from lakebed.feeds.lifecycle import FeedLifecycle
from lakebed.model.names import table_name
from lakebed.model.predicates.language import checked_predicate
from lakebed.model.predicates.text import predicate_from_text


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
    """Check that the table is there, and that decoder and columns fit it.

    Raises:
        TableMissingError, InvalidError: it is not, or they do not; with the nearest.
    """
    at = at_of("connection", connection.name)
    try:
        table = app.catalog.find(table_name(connection.table))
    except TableMissingError as error:
        hint = error.hint or "create it first: `lakebed table create`"
        raise TableMissingError(
            error.message, at=f"{at}.table", table=connection.table, hint=hint
        ) from None
    check_policy(policy, table, at=f"{at}.policy")
    settings = feed.decoder_settings
    if settings is not None:
        columns, decoder_at = (
            connection.columns_settings(policy),
            at_of("feed", feed.name, "decoder"),
        )
        check_decoder(app, settings, columns, table.schema, at=at, decoder_at=decoder_at)
    if connection.where:
        try:
            checked_predicate(predicate_from_text(connection.where), table.schema)
        except InvalidError as error:
            facts = {name: fact for name, fact in error.facts.items() if name != "at"}
            raise InvalidError(error.message, at=f"{at}.where", hint=error.hint, **facts) from None
