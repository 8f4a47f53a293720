"""A feed whose position an operator moves: it goes on there, and what is in quarantine stays."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.feeds.test_decoded_feeds import GOOD, Orders

WHO = {"who": "alice", "why": "seen in the morning"}
SECOND = '{"id": 2, "fare": 1}'


@pytest.fixture
def orders(tmp_path: Path) -> Iterator[Orders]:
    given = Orders(tmp_path)
    yield given
    given.lake.close()


def test_records_that_are_taken_again_are_no_second_time_in_quarantine(orders: Orders) -> None:
    orders.write(GOOD, "no json", SECOND)
    orders.run()
    table = orders.lake.table("orders")
    (kept,) = table.positions()
    table.reset_position(kept.feed, kept.source_split, to=0, expects=kept.next, **WHO)
    done = orders.run()
    assert (done.tally.read, done.tally.stored, done.tally.quarantined) == (3, 2, 1)
    assert [row["id"] for row in orders.rows()] == [1, 1, 2, 2]
    assert orders.quarantined() == [("unparsable", b"no json")]
    assert orders.run().commits == 0
    orders.check()


def test_a_feed_that_stopped_at_a_record_goes_on_behind_it(orders: Orders) -> None:
    strict = 'policy = "Strict"'
    orders.write(GOOD, "no json", SECOND)
    assert orders.run(strict).code == "record-refused"
    table = orders.lake.table("orders")
    (kept,) = table.positions()
    behind = kept.next + len(b"no json\n")
    table.reset_position(kept.feed, kept.source_split, to=behind, expects=kept.next, **WHO)
    assert orders.run(strict).code == ""
    assert [row["id"] for row in orders.rows()] == [1, 2]
    orders.check()


def test_a_table_is_cleared_and_its_feed_begins_again(orders: Orders) -> None:
    orders.write(GOOD, "no json", SECOND)
    orders.run()
    orders.lake.table("orders_quarantine").clear(from_start=True)
    orders.lake.table("orders").clear(from_start=True)
    done = orders.run()
    assert (done.tally.read, done.tally.stored, done.tally.quarantined) == (3, 2, 1)
    assert [row["id"] for row in orders.rows()] == [1, 2]
    assert orders.quarantined() == [("unparsable", b"no json")]
    (row,) = orders.lake.table("orders").ledger()
    assert row.tally.read == 3
    orders.check()


def test_a_position_is_deleted_and_the_file_is_taken_from_its_beginning(orders: Orders) -> None:
    orders.write(GOOD, "no json", SECOND)
    orders.run()
    table = orders.lake.table("orders")
    (kept,) = table.positions()
    table.delete_position(kept.feed, kept.source_split, expects=kept.next, **WHO)
    assert orders.run().tally.read == 3
    assert orders.quarantined() == [("unparsable", b"no json")] * 2, "as all rows"
    assert [row["id"] for row in orders.rows()] == [1, 1, 2, 2]
    orders.check()
