"""What a file says of a route, and what is answered to what it may not."""

from __future__ import annotations

import pytest

from lakebed.config.feeds import feed_file
from lakebed.config.routes import TABLES_MAX, Route
from lakebed.errors import InvalidError

CONNECTION = '[connection.c]\nfeed = "events"\n'
TABLES = 'tables = { WEB = "web", APP = "app" }'


def route(said: str) -> Route:
    """Return the route of a connection."""
    found = feed_file(f"{CONNECTION}route = {said}\n").connections["c"].routing
    assert found is not None
    return found


def refused(said: str) -> InvalidError:
    """Return what is answered to a connection."""
    with pytest.raises(InvalidError) as caught:
        feed_file(CONNECTION + said)
    return caught.value


def test_a_route_names_its_tables_once() -> None:
    found = route('{ field = "type", tables = { A = "x", B = "y", C = "x" }, otherwise = "x" }')
    assert found.names == ["x", "y"]
    assert found.values_of("x") == ["A", "C"]
    assert found.text_of("x") == "type = 'A' or 'C', or any other type"


def test_a_value_may_be_called_like_a_secret_and_be_any_text() -> None:
    found = route(
        '{ field = "type", tables = { password = "logins", "" = "rest", "a.b" = "web" } }'
    )
    assert found.names == ["logins", "rest", "web"]


@pytest.mark.parametrize(
    ("said", "at", "hint"),
    [
        (f'table = "t"\nroute = {{ field = "type", {TABLES} }}', "connection.c.route", "give `table`, or"),
        ("", "connection.c", "say which"),
        ('table = ""', None, "use 1 to 63"),
        ("route = {}", "connection.c.route", "say by which value"),
        ("route = 3", "connection.c.route", "write [connection.c.route]"),
        ('route = { field = "type" }', "connection.c.route.tables", "say at least one"),
        ('route = { field = "type", tables = {} }', "connection.c.route.tables", "say at least one"),
        ('route = { field = "type", tables = 3 }', "connection.c.route.tables", "VALUE"),
        (f'route = {{ feild = "type", {TABLES} }}', "connection.c.route.feild", "did you mean 'field'"),
        (f'route = {{ field = "a..b", {TABLES} }}', "connection.c.route.field", "dots between"),
        ('route = { field = "type", tables = { WEB = "Web!" } }', "connection.c.route.tables.WEB", "use 1 to 63"),
        (f'route = {{ field = "type", {TABLES}, otherwise = "" }}', "connection.c.route.otherwise", "use 1 to 63"),
        (f'route = {{ field = "type", {TABLES}, otherwise = "x", unrouted = "filter" }}', "connection.c.route", "leave one"),
        (f'route = {{ field = "type", {TABLES}, unrouted = "drop" }}', "connection.c.route", None),
        (f'route = {{ field = "type", as = "int64", {TABLES} }}', "connection.c.route.tables", "whole number"),
        ('route = { field = "type", as = "int64", tables = { 07 = "web" } }', "connection.c.route.tables", "whole number"),
    ],
)  # fmt: skip
def test_what_is_no_route_is_refused_with_its_path(
    said: str, at: str | None, hint: str | None
) -> None:
    error = refused(said)
    assert error.facts.get("at") == at
    assert hint is None or hint in str(error.hint), error.hint


def test_a_route_has_a_bounded_number_of_tables() -> None:
    many = ", ".join(f'v{n} = "t{n}"' for n in range(TABLES_MAX + 1))
    assert "at most" in str(refused(f'route = {{ field = "type", tables = {{ {many} }} }}').hint)


def test_a_route_may_lead_more_values_into_tables_and_none_into_another_one() -> None:
    before = route(f'{{ field = "type", {TABLES} }}')
    more = route('{ field = "type", tables = { WEB = "web", APP = "app", POS = "pos" } }')
    assert more.misled(before) is None
    assert before.misled(more) == "tables.POS", "what has a table keeps it"
    assert route(f'{{ field = "type", {TABLES}, otherwise = "rest" }}').misled(before) is None
    assert route(f'{{ field = "type", {TABLES}, unrouted = "filter" }}').misled(before) is None
    assert route(f'{{ field = "kind", {TABLES} }}').misled(before) == "field"
    swapped = route('{ field = "type", tables = { WEB = "app", APP = "app" } }')
    assert swapped.misled(before) == "tables.WEB"


def test_a_route_for_all_other_values_keeps_them() -> None:
    before = route('{ field = "type", tables = { WEB = "web" }, otherwise = "rest" }')
    taken = route('{ field = "type", tables = { WEB = "web", APP = "app" }, otherwise = "rest" }')
    said = route('{ field = "type", tables = { WEB = "web", APP = "rest" }, otherwise = "rest" }')
    assert taken.misled(before) == "tables.APP", "its rows are in the other table"
    assert said.misled(before) is None
    assert before.misled(said) is None
    assert route('{ field = "type", tables = { WEB = "web" } }').misled(before) == "otherwise"
