"""What a file says of a route, and what is answered to what it may not."""

from __future__ import annotations

import pytest

from lakebed.config.definitions.routes import TABLES_MAX, Route
from lakebed.config.feeds import feed_file
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
        (f'table = "t"\nroute = {{ field = "type", {TABLES} }}', ".route", "give `table`, or"),
        ("", "", "say which"),
        ("route = {}", ".route", "say by which value"),
        ("route = 3", ".route", "write [connection.c.route]"),
    ],
)
def test_a_connection_has_a_table_or_a_route(said: str, at: str, hint: str) -> None:
    error = refused(said)
    assert error.facts["at"] == f"connection.c{at}"
    assert hint in str(error.hint)


@pytest.mark.parametrize(
    ("said", "at", "hint"),
    [
        ("", ".tables", "say at least one"),
        ("tables = {}", ".tables", "say at least one"),
        ("tables = 3", ".tables", "VALUE"),
        (f"othrewise = 'x', {TABLES}", ".othrewise", "did you mean 'otherwise'"),
        ('tables = { WEB = "Web!" }', ".tables.WEB", "use 1 to 63"),
        (f'{TABLES}, otherwise = ""', ".otherwise", "use 1 to 63"),
        (f'{TABLES}, otherwise = "x", unrouted = "filter"', "", "leave one"),
        (f'{TABLES}, unrouted = "drop"', "", ""),
        (f'as = "int64", {TABLES}', ".tables", "whole number"),
        ('as = "int64", tables = { 07 = "web" }', ".tables", "whole number"),
    ],
)
def test_what_is_no_route_is_refused_with_its_path(said: str, at: str, hint: str) -> None:
    error = refused(f'route = {{ field = "type", {said} }}'.replace(",  }", " }"))
    assert error.facts["at"] == f"connection.c.route{at}"
    assert hint in str(error.hint)


def test_a_field_is_a_path() -> None:
    error = refused(f'route = {{ field = "a..b", {TABLES} }}')
    assert error.facts["at"] == "connection.c.route.field"
    assert "dots between" in str(error.hint)


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
