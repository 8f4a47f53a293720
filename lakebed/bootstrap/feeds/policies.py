"""Compares what policies ask for with what a table can do."""

from __future__ import annotations

from functools import partial

from lakebed.config.decoders import ColumnsOf, DecoderSettings, path_of
from lakebed.config.definitions.custom_sources import CustomFeed
from lakebed.config.definitions.toml_fields import at_of
from lakebed.config.feed_sources import PushFeed, S3Feed, SocketFeed, SqsFeed
from lakebed.config.feeds import Feed
from lakebed.config.policies import Contract, Policy
from lakebed.decoding.listed_objects import passed_before
from lakebed.decoding.wanted import wanted_of
from lakebed.errors import InvalidError, did_you_mean
from lakebed.feeds.pacing.known_items import (
    ForgottenItems,
    OldItems,
    PassedItems,
    check_once,
)
from lakebed.model.feeds.verdicts import Verdict
from lakebed.model.schema import Schema
from lakebed.model.types import ListOf, MapOf, StructOf
from lakebed.statestore.log_entries.feed_changes import ONCE_SECONDS_MIN
from lakebed.statestore.open_table import OpenTable

ITEMS_SPARED = 1_000_000
"""The newest items of a landing table that stay known, whatever their age."""
PASSED_SECONDS_MIN = 2 * 86_400
"""Fewest seconds that a landing table knows when an object was taken, after readers passed it."""


def check_policy(policy: Policy, table: OpenTable, *, at: str) -> None:
    """Refuse what a connection's policy asks for, and its table cannot do.

    Raises:
        InvalidError: it asks for that.
    """
    with table.head.reading() as state:
        processing, settings = state.processing(), state.settings()
    if policy.dedupe == "window":
        check_once(policy.once_seconds, settings.job_id_seconds_min, at=at)
    if policy.dedupe != "key":
        return
    if processing is None or processing.latest is None:
        hint = "create the table with `latest` in its processing"
        raise InvalidError(
            "rows of one key are known only where the table keeps the latest", at=at, hint=hint
        )


def old_items_of(feed: Feed, landing: OpenTable) -> ForgottenItems | None:
    """Return what lets a landing table forget items; None: its records have none.

    Raises:
        InvalidError: the source relies on items for longer than the table remembers them.
    """
    source, at = feed.source, at_of("feed", feed.name, "source", "once_seconds")
    with landing.head.reading() as state:
        remembered = state.settings().job_id_seconds_min
    if isinstance(source, SqsFeed | PushFeed | SocketFeed):
        check_once(source.once_seconds, remembered, at=at)
        return OldItems(source.once_seconds, spared=ITEMS_SPARED)
    if isinstance(source, CustomFeed) and not source.is_ordered:
        return OldItems(max(remembered, ONCE_SECONDS_MIN))
    if isinstance(source, S3Feed) and source.order == "any":
        check_once(source.once_seconds + PASSED_SECONDS_MIN, remembered, at=at)
        passed = partial(passed_before, once_seconds=source.once_seconds)
        return PassedItems(passed, many=ITEMS_SPARED + ITEMS_SPARED // 2)
    return None


def once_column(
    policy: Policy, settings: DecoderSettings, columns: ColumnsOf, schema: Schema, *, at: str
) -> str:
    """Return the column that has the values of which a policy lets each in once; "": none. at: of
    the connection, for messages.

    Raises:
        InvalidError: no column has these values, or their type has no equals.
    """
    if policy.dedupe != "window":
        return ""
    path = path_of(policy.dedupe_field, at=f"{at}.policy")
    wanted = wanted_of(settings, columns, schema, at=at)
    fields = {
        (column.field.name,) if column.value is None else wanted.values[column.value].path: column
        for column in reversed(wanted.columns)
    }
    if path not in fields:
        known = [".".join(one) for one in fields]
        hint = did_you_mean(policy.dedupe_field, known, what="path")
        raise InvalidError(
            "no column has the values that are let in once",
            at=f"{at}.policy",
            dedupe_field=policy.dedupe_field,
            hint=hint,
        )
    field = fields[path].field
    if isinstance(field.type, ListOf | MapOf | StructOf):
        hint = "name a field with one value, such as an id"
        raise InvalidError(
            "lists, maps and structs are not compared",
            at=f"{at}.policy",
            dedupe_field=policy.dedupe_field,
            hint=hint,
        )
    return field.name


def verdicts_of(policy: Policy, contract: Contract) -> frozenset[Verdict]:
    """Return the verdicts of records for which a policy's schema says this."""
    found = {Verdict.UNKNOWN_FIELD} if policy.schema_column == contract else set[Verdict]()
    if policy.schema_type == contract:
        found |= {Verdict.TYPE_MISMATCH, Verdict.OUT_OF_RANGE}
    return frozenset(found)
