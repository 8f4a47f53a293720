"""A connection with a route in the lake's definitions: what may be applied, and how one of its
tables fails by itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import lakebed
from lakebed.bootstrap.feeds.worker import feed_worker
from lakebed.config.feeds import feed_file
from lakebed.errors import InvalidError, TableMissingError
from lakebed.feed import FeedDefinitions
from lakebed.feeds.known_definitions import ConnectionDefinition
from lakebed.model.feeds.definitions import FeedFailure
from tests.unit.feeds.definition_stories import Definitions
from tests.unit.feeds.routing.stories import WEB_APP, WITH_REST, Events, turn_until

FEED = '[feed.events]\nfiles = "*.json"\ndecoder = { format = "json" }\n'
ROUTED = f'[connection.c]\nfeed = "events"\nroute = {WEB_APP}\n'


@pytest.fixture
def events(tmp_path: Path) -> Iterator[Events]:
    given = Events(tmp_path)
    yield given
    given.lake.close()


@pytest.fixture
def definitions() -> Definitions:
    found = Definitions()
    found.apply(FEED + ROUTED)
    return found


def parts(definitions: Definitions) -> dict[str, ConnectionDefinition]:
    """Return what runs of the connection, by name."""
    return {one.connection.name: one for one in definitions.known.connections_of("events")}


def test_each_table_has_an_id_that_follows_from_the_connections(definitions: Definitions) -> None:
    first = parts(definitions)
    assert {n: one.connection.table for n, one in first.items()} == {"c/app": "app", "c/web": "web"}
    ids = {one.id for one in first.values()}
    assert len(ids) == 2
    assert definitions.known.connection("c/app") == first["c/app"]
    with pytest.raises(InvalidError) as caught:
        definitions.known.connection("c")
    assert "c/app, c/web" in str(caught.value.hint)
    definitions.apply(FEED + ROUTED.replace('APP = "app"', 'APP = "app", POS = "pos"'))
    again = parts(definitions)
    assert again["c/app"].id == first["c/app"].id, "positions go on"
    assert again["c/app"].version > first["c/app"].version
    definitions.drop("connection", "c")
    definitions.apply(FEED + ROUTED)
    assert not ids & {one.id for one in parts(definitions).values()}, "never used again"


def test_a_value_keeps_its_table(definitions: Definitions) -> None:
    with pytest.raises(InvalidError) as caught:
        definitions.apply(FEED + ROUTED.replace('WEB = "web"', 'WEB = "app"'))
    assert caught.value.facts["at"] == "connection.c.route.tables.WEB"


def test_a_table_does_not_become_a_route(definitions: Definitions) -> None:
    with pytest.raises(InvalidError, match="keeps its feed and its table"):
        definitions.apply(FEED + '[connection.c]\nfeed = "events"\ntable = "web"\n')


def test_one_table_fails_by_itself_and_a_start_forgets_all(definitions: Definitions) -> None:
    definitions.lifecycle.run("start", "events")
    version = parts(definitions)["c/web"].version
    web = FeedFailure("record-refused", "why", version, "web")
    app = FeedFailure("denied", "because", version, "app")
    definitions.registry.note_failure("connection", "c", web)
    assert {n: one.failed for n, one in parts(definitions).items()} == {"c/web": web, "c/app": None}
    revision = definitions.known.entries["connection", "c"].revision
    definitions.registry.note_failure("connection", "c", app)
    definitions.registry.note_failure("connection", "c", app)
    assert definitions.known.entries["connection", "c"].revision == revision + 1, "it is known"
    assert {n: one.failed for n, one in parts(definitions).items()} == {"c/web": web, "c/app": app}
    definitions.lifecycle.run("start", "events")
    assert {one.failed for one in parts(definitions).values()} == {None}


def test_a_failure_of_an_older_definition_is_none_of_a_newer_one(definitions: Definitions) -> None:
    version = parts(definitions)["c/web"].version
    definitions.registry.note_failure("connection", "c", FeedFailure("denied", "", version, "web"))
    definitions.apply(FEED + ROUTED + "lineage = false\n")
    assert {one.failed for one in parts(definitions).values()} == {None}


def test_a_feed_is_dropped_with_its_routes_once(definitions: Definitions) -> None:
    found = definitions.drop("feed", "events", cascade=True)
    assert found == [("connection", "c"), ("feed", "events")]


@pytest.mark.parametrize(
    ("said", "at", "hint"),
    [
        ('field = "type", tables = { WEB = "wep" }', "tables.WEB", "did you mean 'web'"),
        ('field = "type", tables = { A = "web" }, otherwise = "rets"', "otherwise", "'rest'"),
        ('field = "tpye", tables = { A = "web" }, otherwise = "rest"', "field", "'type'"),
    ],
)
def test_what_is_not_there_is_refused_with_the_nearest(
    events: Events, said: str, at: str, hint: str
) -> None:
    with pytest.raises((InvalidError, TableMissingError)) as caught:
        FeedDefinitions(events.lake).apply(events.text(f"{{ {said} }}"))
    assert caught.value.facts["at"] == f"connection.by-type.route.{at}"
    assert hint in str(caught.value.hint)


@pytest.mark.parametrize(
    ("more", "at", "table", "hint"),
    [
        ('columns = { id = "nr", ulr = "url" }', ".columns.ulr", None, "did you mean 'url'"),
        ('columns = { url = "url" }', "", "app", "say where"),
        ('columns = { id = "nr", url = "url" }', ".columns.screen", "app", "say where"),
        ("where = \"url = 'a'\"", ".where", "app", ""),
        ('columns = { id = "nr", type = "kind" }', ".route.field", None, "'kind'"),
    ],
)
def test_columns_that_do_not_fit_a_table_are_refused_with_its_name(
    events: Events, more: str, at: str, table: str | None, hint: str
) -> None:
    route = WITH_REST if "type =" in more else WEB_APP
    with pytest.raises(InvalidError) as caught:
        FeedDefinitions(events.lake).apply(events.text(route, more))
    assert caught.value.facts["at"] == f"connection.by-type{at}"
    assert caught.value.facts.get("table") == table
    assert hint in str(caught.value.hint)


@pytest.mark.parametrize(
    ("decoder", "hint"),
    [
        ('{ format = "text", fields = ["id", "url", "kind"] }', "fields: id, kind, url"),
        ('{ format = "raw" }', "another format"),
    ],
)
def test_a_field_that_the_decoder_does_not_give_is_refused(
    events: Events, decoder: str, hint: str
) -> None:
    route = '{ field = "type", tables = { WEB = "web" } }'
    text = events.text(route, 'rest = "url"').replace('{ format = "json" }', decoder)
    with pytest.raises(InvalidError) as caught:
        FeedDefinitions(events.lake).apply(text)
    assert caught.value.facts["at"] == "connection.by-type.route.field"
    assert hint in str(caught.value.hint)


def test_columns_of_all_tables_stand_in_one_list(events: Events) -> None:
    events.write({"t": {"n": "WEB"}, "nr": 1, "u": "a"}, {"t": {"n": "APP"}, "nr": 2, "s": 3})
    events.run(
        WEB_APP.replace('"type"', '"t.n"'), 'columns = { id = "nr", url = "u", screen = "s" }'
    )
    assert events.rows("web") == [{"id": 1, "url": "a"}]
    assert events.rows("app") == [{"id": 2, "screen": 3}]


def test_a_new_value_finds_its_earlier_rows_and_none_is_there_twice(events: Events) -> None:
    definitions = FeedDefinitions(events.lake)
    definitions.apply(events.text('{ field = "type", tables = { WEB = "web" } }'))
    definitions.start("events")
    feeds = lakebed.Feeds(events.lake)
    events.write(
        {"type": "WEB", "id": 1}, {"type": "APP", "id": 2, "screen": 0}, {"type": "POS", "id": 3}
    )
    events.taken(feeds)
    definitions.apply(events.text(WEB_APP.replace('APP = "app"', 'APP = "app", POS = "web"')))
    events.write({"type": "POS", "id": 4})
    events.taken(lakebed.Feeds(events.lake))
    assert (events.ids("web"), events.ids("app")) == ([1, 4], [2]), (
        "a new table reads from the start"
    )
    definitions.replay("events", connection="by-type")
    assert (events.ids("web"), events.ids("app")) == ([1, 3, 4], [2])
    assert not list(definitions.quarantined("events")), "each is taken where it belongs"
    events.check()


def test_a_route_is_read_from_what_was_stored() -> None:
    said = feed_file(FEED + ROUTED).said["connection", "c"]
    assert said["route"]["tables"] == {"WEB": "web", "APP": "app"}


def test_a_worker_goes_on_with_the_tables_that_did_not_fail(events: Events) -> None:
    definitions = FeedDefinitions(events.lake)
    route = {"field": "type", "tables": {"WEB": "web", "APP": "app"}}
    definitions.apply(events.text(WEB_APP, 'policy = "Strict"'))
    kept = definitions.define(
        "connection", "by-type", {"feed": "events", "route": route, "policy": "Strict"}
    )
    assert kept.action == "keep", "a route may be given as a dict"
    definitions.start("events")
    events.write({"type": "APP", "id": 1}, {"type": "WEB", "id": 2})
    worker = feed_worker(events.lake._app)
    try:
        turn_until(worker, lambda: bool(definitions.standing("events").failed))
        failed = definitions.standing("events").failed
        assert list(failed) == ["connection.by-type/app"]
        assert failed["connection.by-type/app"].startswith("record-refused")
        assert turn_until(worker, lambda: events.ids("web") == [2])
        events.write({"type": "WEB", "id": 3})
        assert turn_until(worker, lambda: events.ids("web") == [2, 3]), "the other one goes on"
        names = [report.name for report in worker.reports()]
        assert names == ["by-type/web"]
        definitions.apply(events.text(WEB_APP))
        assert turn_until(worker, lambda: events.ledger("app").read == 3), "as of a new version"
    finally:
        worker.close()
    assert not definitions.standing("events").failed
    assert events.quarantined() == {("missing-field", b'{"type": "APP", "id": 1}'): 1}
