"""Checks the definition of a connection, which leads a feed into tables: `[connection.NAME]` of a
file of feeds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from lakebed.config.decoders import ColumnsOf, columns_of
from lakebed.config.definitions.routes import Route, route_of
from lakebed.config.definitions.toml_fields import at_of, check_names, checked, section
from lakebed.config.policies import Policy
from lakebed.errors import InvalidError
from lakebed.model.names import table_name
from lakebed.model.predicates.text import predicate_from_text

DAY_SECONDS = 86_400
_OF_COLUMNS = ("columns", "rest", "lineage", "meta", "auto_key")


class ConnectionSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a connection, which leads a feed into a table, or into several."""

    feed: Annotated[str, Meta(min_length=1, max_length=63, description="Whose records it takes.")]
    table: Annotated[
        str, Meta(max_length=63, description="That gets the rows. Left out: `route` says which.")
    ] = ""
    route: Annotated[
        dict[str, Any],
        Meta(description="Which of several tables gets a row, by the value of a field."),
    ] = {}
    where: Annotated[
        str,
        Meta(
            max_length=20_000,
            description="A predicate: other rows are counted as filtered. Left out: all are taken.",
        ),
    ] = ""
    columns: Annotated[
        dict[str, Any],
        Meta(
            max_length=10_000,
            description="The path of the value by column, or `{ path = ..., as = ... }`. Left out:"
            " a column has the value of its name.",
        ),
    ] = {}
    rest: Annotated[
        str, Meta(max_length=1_000, description="The column that has the whole record.")
    ] = ""
    lineage: Annotated[
        bool,
        Meta(
            description="Whether the columns `_split`, `_position` and `_version` say where a row"
            " is from."
        ),
    ] = False
    meta: Annotated[
        tuple[str, ...],
        Meta(
            max_length=3,
            description="Which of `key`, `headers` and `time` the record itself gives, as columns.",
        ),
    ] = ()
    auto_key: Annotated[
        str,
        Meta(
            max_length=1_000,
            description="The column, of type string or binary, that has an id of the record: of"
            " 16 bytes, the same whenever it is read. For records without a key of their own.",
        ),
    ] = ""
    policy: Annotated[str, Meta(max_length=63, description="Left out: that of the feed.")] = ""
    window_seconds: Annotated[
        int,
        Meta(
            ge=0,
            le=DAY_SECONDS,
            description="Length of the windows of event time in which rows are counted. 0: none.",
        ),
    ] = 0
    disorder_seconds: Annotated[
        int,
        Meta(
            ge=0,
            le=366 * DAY_SECONDS,
            description="How far behind the greatest event time a record may come.",
        ),
    ] = 0
    seal_seconds: Annotated[
        int,
        Meta(
            ge=0,
            le=366 * DAY_SECONDS,
            description="How long a window stays open behind the watermark.",
        ),
    ] = 0
    ahead_seconds_max: Annotated[
        int,
        Meta(
            ge=0,
            le=366 * DAY_SECONDS,
            description="How far an event time may lie ahead of log time.",
        ),
    ] = DAY_SECONDS


class DefinedConnection(ConnectionSettings, frozen=True, kw_only=True):
    """A connection. Fields: as the page of settings describes them."""

    name: str

    @property
    def routing(self) -> Route | None:
        """Return the rule by which a row's table is chosen; None: there is one table."""
        at = at_of("connection", self.name, "route")
        return route_of(self.route, at=at) if self.route else None

    @property
    def tables(self) -> list[str]:
        """Return the names of the tables that get its rows."""
        route = self.routing
        return [self.table] if route is None else route.names

    def columns_settings(self, policy: Policy) -> ColumnsOf:
        """Return which values of a record become which columns, by what it says and its policy."""
        said = {name: getattr(self, name) for name in _OF_COLUMNS}
        more = {
            "nulls": policy.nulls,
            "unknown": policy.schema_column,
            "types": policy.schema_type,
        }
        return columns_of({**said, **more}, at=at_of("connection", self.name))


def connection_of(name: str, said: object) -> DefinedConnection:
    """Return the connection that a section says. Raises: InvalidError: as `feed_of`."""
    at = at_of("connection", name)
    _short_name("connection", name)
    fields = section(said, at)
    check_names(fields, ConnectionSettings.__struct_fields__, at)
    if "feed" not in fields:
        hint = 'say which: `feed = "NAME"`'
        raise InvalidError("a connection without a feed", at=at, hint=hint)
    _check_ends(fields, at)
    found = checked(fields, ConnectionSettings, at)
    if "table" in fields:
        table_name(found.table)
    for column, value in found.columns.items():
        if not isinstance(value, str | dict):
            hint = "write a path as in `meta.ts`, or { path = ..., as = ... }"
            raise InvalidError("not a path", at=f"{at}.columns.{at_of(column)}", hint=hint)
    columns_of({name: value for name, value in fields.items() if name in _OF_COLUMNS}, at=at)
    if found.where:
        _check_where(found.where, at)
    return DefinedConnection(name=name, **msgspec.structs.asdict(found))


def _check_ends(fields: Mapping[str, Any], at: str) -> None:
    """Refuse a connection that says no table and no route, or both."""
    if "route" in fields:
        if "table" in fields:
            hint = "give `table`, or `route`; `otherwise` of a route is for all other rows"
            raise InvalidError("a connection has a table or a route", at=f"{at}.route", hint=hint)
        route_of(fields["route"], at=f"{at}.route")
    elif "table" not in fields:
        hint = 'say which: `table = "NAME"`, or `route = { ... }`'
        raise InvalidError("a connection without a table", at=at, hint=hint)


def _check_where(where: str, at: str) -> None:
    try:
        predicate_from_text(where)
    except InvalidError as error:
        facts = {("behind" if name == "at" else name): fact for name, fact in error.facts.items()}
        raise InvalidError(error.message, at=f"{at}.where", hint=error.hint, **facts) from None


def _short_name(kind: str, name: str) -> None:
    try:
        table_name(name)
    except InvalidError as error:
        raise InvalidError(f"not a name of a {kind}", hint=error.hint, **error.facts) from None
