"""Routes beside what else a feed may have: landing, windows of event time, lines of text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from lakebed.bootstrap.feeds.receivers import receiver_of
from lakebed.feed import FeedDefinitions
from lakebed.landing.push.receiver import RequestHead
from tests.unit.feeds.routing.stories import WEB_APP, WITH_REST, Events, work

NOW = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - timedelta(hours=2)


@pytest.fixture
def events(tmp_path: Path) -> Iterator[Events]:
    given = Events(tmp_path)
    yield given
    given.lake.close()


def push(events: Events, *records: object) -> None:
    receiver = receiver_of(events.lake._app, "events", None)[0]
    body = b"".join(json.dumps(record).encode() + b"\n" for record in records)
    headers = [("content-type", "application/x-ndjson"), ("content-length", str(len(body)))]
    assert receiver.respond(RequestHead("POST", "/events", headers), lambda _: body).status == 200


def test_what_is_pushed_is_landed_once_and_goes_into_its_tables(events: Events) -> None:
    definitions = FeedDefinitions(events.lake)
    text = events.text(WEB_APP).replace(
        f'files = "{events.folder}/*.json"', "source = {push = true}"
    )
    definitions.apply(text)
    definitions.start("events")
    push(events, {"type": "WEB", "id": 1}, {"type": "APP", "id": 2, "screen": 0})
    push(events, {"type": "WEB", "id": 3}, {"type": "POS", "id": 4})
    tables = events.lake.tables
    assert work(
        events, lambda: "events_landing" in tables() and len(events.rows("events_landing")) == 4
    )
    assert work(events, lambda: {events.ledger(name).read for name in ("web", "app")} == {4})
    assert (events.ids("web"), events.ids("app")) == ([1, 3], [2])
    assert events.quarantined() == {("no-route", b'{"type": "POS", "id": 4}'): 2}
    assert len(events.rows("events_landing")) == 4
    events.check()


def test_windows_of_a_table_count_its_own_rows(events: Events) -> None:
    events.write(
        *(
            {"type": kind, "id": n, "at": (NOW + timedelta(seconds=30 * n)).isoformat()}
            for n, kind in enumerate(("WEB", "POS", "WEB", "POS", "WEB"))
        )
    )
    route = WITH_REST.replace('"app"', '"rest"')
    text = events.text(route, "window_seconds = 60")
    time_of = '{{ format = "json", time = {{ path = "at", as = "iso" }} }}'.format()
    FeedDefinitions(events.lake).apply(text.replace('{ format = "json" }', time_of))
    definitions = FeedDefinitions(events.lake)
    definitions.start("events")
    assert work(events, lambda: {events.ledger(name).read for name in ("web", "rest")} == {5})
    counted = {
        name: [(one.rows, one.start) for one in events.lake.table(name).windows()]
        for name in ("web", "rest")
    }
    assert [rows for rows, _ in counted["web"]] == [1, 1, 1]
    assert [rows for rows, _ in counted["rest"]] == [1, 1]
    events.check()


def test_a_field_of_a_line_of_text_leads(events: Events) -> None:
    events.write("WEB,1,a", "APP,2,", ",3,c", "WEB,4")
    text = events.text(
        '{ field = "kind", tables = { WEB = "web" }, otherwise = "rest" }',
        'columns = { id = "nr", url = "note", type = "note" }',
    )
    decoder = '{ format = "text", fields = ["kind", "nr", "note"] }'
    definitions = FeedDefinitions(events.lake)
    definitions.apply(text.replace('{ format = "json" }', decoder))
    definitions.start("events")
    events.taken(events.feeds())
    assert events.rows("web") == [{"id": 1, "url": "a"}]
    assert events.rows("rest") == [{"id": 2, "type": None}, {"id": 3, "type": "c"}]
    assert events.quarantined() == {("unparsable", b"WEB,4"): 2}
