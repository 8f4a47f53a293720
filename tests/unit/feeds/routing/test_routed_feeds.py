"""A connection with a route: one feed, several tables, each with a chain of its own (protocol
R7)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.feeds.routing.stories import WEB_APP, WITH_REST, Events


@pytest.fixture
def events(tmp_path: Path) -> Iterator[Events]:
    given = Events(tmp_path)
    yield given
    given.lake.close()


def test_a_row_goes_into_the_table_of_its_value_and_each_table_counts_all(events: Events) -> None:
    events.write(
        {"type": "WEB", "id": 1, "url": "a"},
        {"type": "APP", "id": 2, "screen": 7},
        {"type": "WEB", "id": 3},
    )
    done = events.run()
    assert events.rows("web") == [{"id": 1, "url": "a"}, {"id": 3, "url": None}]
    assert events.rows("app") == [{"id": 2, "screen": 7}]
    assert {one.name for one in done.values()} == {"by-type/web", "by-type/app"}
    for table, stored in (("web", 2), ("app", 1)):
        tally = events.ledger(table)
        assert (tally.read, tally.stored, tally.filtered) == (3, stored, 3 - stored)
    assert [one.commits for one in events.run().values()] == [0, 0]
    events.check()


def test_all_other_values_and_records_without_one_go_where_the_route_says(events: Events) -> None:
    events.write(
        {"type": "POS", "id": 1}, {"id": 2}, {"type": None, "id": 3}, {"type": "WEB", "id": 4}
    )
    events.run(WITH_REST)
    assert (events.ids("rest"), events.ids("web"), events.ids("app")) == ([1, 2, 3], [4], [])
    assert not events.quarantined()


def test_two_values_may_lead_into_one_table(events: Events) -> None:
    events.write(*({"type": name, "id": n} for n, name in enumerate(("WEB", "MOBILE", "APP"))))
    events.run('{ field = "type", tables = { WEB = "web", MOBILE = "web" }, unrouted = "filter" }')
    assert events.ids("web") == [0, 1]
    assert events.ledger("web").filtered == 1
    assert not events.quarantined()


def test_a_bad_record_of_one_table_is_nothing_to_another(events: Events) -> None:
    bad = {"type": "APP", "id": 1, "screen": "no number"}
    events.write({"type": "WEB", "id": 2}, bad, "no json")
    events.run(WITH_REST)
    found = {(row["verdict"], row["detail"]) for row in events.rows("events_quarantine")}
    (mismatch,) = (detail for verdict, detail in found if verdict == "type-mismatch")
    assert mismatch.startswith("screen")
    assert events.quarantined()["type-mismatch", json.dumps(bad).encode()] == 1
    counted = [events.ledger(name).quarantined for name in ("web", "app", "rest")]
    assert counted == [1, 2, 1], "what is no JSON may be of each"
    events.check()


def test_what_may_be_of_any_table_is_missed_by_each(events: Events) -> None:
    events.write("no json", {"type": "POS", "id": 1}, {"type": ["WEB"], "id": 2})
    events.run()
    assert events.quarantined() == {
        ("unparsable", b"no json"): 2,
        ("no-route", b'{"type": "POS", "id": 1}'): 2,
        ("type-mismatch", b'{"type": ["WEB"], "id": 2}'): 2,
    }
    for table in ("web", "app"):
        assert events.ledger(table).quarantined == 3
    events.check()


def test_a_number_may_lead(events: Events) -> None:
    events.write({"type": 7, "id": 1}, {"type": -1, "id": 2, "screen": 1}, {"type": 8, "id": 3})
    events.run(
        '{ field = "type", as = "int64", tables = { 7 = "web", -1 = "app" }, unrouted = "filter" }'
    )
    assert (events.ids("web"), events.ids("app")) == ([1], [2])


def test_a_table_that_gets_no_rows_moves_its_position(events: Events) -> None:
    events.write(*({"type": "WEB", "id": n} for n in range(5)))
    events.run()
    web, app = (events.lake.table(name).positions() for name in ("web", "app"))
    assert [one.next for one in web] == [one.next for one in app]
    assert web[0].feed != app[0].feed, "each has a chain of its own"
    assert events.ledger("app").filtered == 5


def test_one_table_that_is_gone_or_cleared_harms_no_other(events: Events) -> None:
    events.write({"type": "WEB", "id": 1}, {"type": "APP", "id": 2, "screen": 0})
    events.run()
    events.lake.table("web").clear(from_start=True)
    events.write({"type": "APP", "id": 3, "screen": 0}, {"type": "WEB", "id": 4})
    events.run()
    assert (events.ids("web"), events.ids("app")) == ([1, 4], [2, 3])
    events.check()


@pytest.mark.parametrize("route", [WEB_APP, WITH_REST])
def test_a_policy_stops_only_the_tables_that_a_bad_record_may_be_of(
    events: Events, route: str
) -> None:
    events.write({"type": "APP", "id": 1}, {"type": "WEB", "id": 2})
    done = events.run(route, 'policy = "Strict"')
    assert done["app"].code == "record-refused"
    assert done["web"].code == ""
    assert events.ids("web") == [2]
