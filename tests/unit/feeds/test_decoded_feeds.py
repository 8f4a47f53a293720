"""A feed from a growing file to rows of a typed table: what is no row is quarantined, counted, and
stops the feed where its policy says so."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import lakebed
from lakebed.errors import InvalidError, LakebedError
from lakebed.feeds.run_feeds import FeedDone

TEXT = """
[feed.orders]
files = "{folder}/*.json"
decoder = {{ format = "json" }}
[connection.all-orders]
feed = "orders"
table = "orders"
{more}
"""
GOOD = '{"id": 1, "fare": 2.5}'


class Orders:
    """A lake with a table of orders, and a file of them that grows."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lake = lakebed.connect(folder / "lake", create=True)
        schema = lakebed.schema_of(row_keys={"id": "int64"}, values={"fare": "float64"})
        self.lake.create_table("orders", schema)
        self.failures: list[LakebedError] = []

    def write(self, *lines: str) -> None:
        with (self.folder / "orders.json").open("a", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in lines)

    def run(self, more: str = "") -> FeedDone:
        text = TEXT.format(folder=self.folder, more=more)
        (done,) = lakebed.Feeds(self.lake, text).run(
            failed=lambda _, error: self.failures.append(error)
        )
        return done

    def rows(self, table: str = "orders") -> list[dict[str, Any]]:
        return self.lake.table(table).query().read_all().to_pylist()

    def quarantined(self) -> list[tuple[str, bytes]]:
        return [(row["verdict"], row["value"]) for row in self.rows("orders_quarantine")]

    def check(self) -> None:
        found = self.lake.fsck(deep=True).findings
        assert [one.code for one in found if one.severity != "notice"] == []


@pytest.fixture
def orders(tmp_path: Path) -> Iterator[Orders]:
    given = Orders(tmp_path)
    yield given
    given.lake.close()


def test_records_become_rows_and_bad_ones_keep_their_bytes_and_their_reason(orders: Orders) -> None:
    orders.write(GOOD, "no json", '{"id": 2, "fare": 1}', '{"fare": 3}', GOOD + GOOD)
    done = orders.run()
    assert orders.rows() == [{"id": 1, "fare": 2.5}, {"id": 2, "fare": 1.0}]
    assert orders.quarantined() == [
        ("unparsable", b"no json"),
        ("missing-field", b'{"fare": 3}'),
        ("not-one-object", (GOOD + GOOD).encode()),
    ]
    assert (done.tally.read, done.tally.stored, done.tally.quarantined) == (5, 2, 3)
    assert orders.run().commits == 0
    orders.check()


def test_a_feed_with_a_connection_is_not_landed_unless_it_says_so(orders: Orders) -> None:
    orders.write(GOOD)
    orders.run()
    assert "orders_landing" not in orders.lake.tables()


def test_what_a_connection_filters_out_is_counted(orders: Orders) -> None:
    orders.write(GOOD, '{"id": 2, "fare": 1}')
    done = orders.run('where = "fare > 2"')
    assert (done.tally.stored, done.tally.filtered) == (1, 1)
    assert [row["id"] for row in orders.rows()] == [1]


def test_the_next_bad_record_in_a_row_stops_the_feed_and_what_was_before_is_committed(
    orders: Orders,
) -> None:
    few = 'policy = "few"\n[policy.few]\nerrors_in_row_max = 2'
    orders.write(GOOD, "x", "y", '{"id": 2, "fare": 1}', "a", "b", "c", '{"id": 3, "fare": 1}')
    done = orders.run(few)
    assert done.code == "record-refused"
    assert [row["id"] for row in orders.rows()] == [1, 2]
    assert [value for _, value in orders.quarantined()] == [b"x", b"y", b"a", b"b"]
    head = orders.lake._app.catalog.find("orders").head
    before = head.state.head().number
    assert orders.run(few).code == "record-refused", "the next owner counts on"
    assert len(orders.quarantined()) == 4
    head.follow()
    assert head.state.head().number == before, "to try again makes no entry"
    more = few.replace("= 2", "= 3") + "\n"
    assert orders.run(more).code == ""
    assert [row["id"] for row in orders.rows()] == [1, 2, 3]
    orders.check()


def test_a_strict_policy_stops_at_the_first_bad_record(orders: Orders) -> None:
    orders.write(GOOD, "x", '{"id": 2, "fare": 1}')
    done = orders.run('policy = "Strict"')
    assert done.code == "record-refused"
    assert [row["id"] for row in orders.rows()] == [1]
    assert "position=23" in str(orders.failures[0])
    assert "no json" not in str(orders.failures[0])


def test_a_policy_that_skips_counts_and_keeps_nothing(orders: Orders) -> None:
    orders.write(GOOD, "x")
    done = orders.run('policy = "loose"\n[policy.loose]\non_record_error = "skip"')
    assert done.tally.quarantined == 1
    assert "orders_quarantine" not in orders.lake.tables()


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ('columns = { id = "id", far = "fare" }', "connection.all-orders.columns"),
        ('policy = "Stirct"', "Strict"),
        ('where = "fares > 2"', "fare"),
    ],
)
def test_a_definition_that_does_not_fit_is_refused_before_anything_is_read(
    orders: Orders, more: str, says: str
) -> None:
    orders.write(GOOD)
    with pytest.raises(InvalidError) as refused:
        orders.run(more)
    assert says in str(refused.value)
    assert orders.rows() == []


def test_a_feed_that_the_lake_defines_is_not_run_from_a_file_too(orders: Orders) -> None:
    orders.write(GOOD)
    text = TEXT.format(folder=orders.folder, more="")
    lakebed.FeedDefinitions(orders.lake).apply(text)
    with pytest.raises(InvalidError, match="the lake defines this feed"):
        lakebed.Feeds(orders.lake, text)
