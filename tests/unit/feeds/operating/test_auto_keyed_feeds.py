"""Rows of records without a key have an id that is the same whenever the record is read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import lakebed
from lakebed.bootstrap.feeds.receivers import receiver_of
from lakebed.feeds.operating.position_admin import KeptPosition
from lakebed.landing.push.receiver import RequestHead

TEXT = """
[feed.hits]
source = {{ files = "{folder}/*.log" }}
decoder = {{ format = "json" }}
{landing}
[connection.all]
feed = "hits"
table = "hits"
auto_key = "id"
columns = {{ n = "{path}" }}
policy = "FaultTolerant"
"""


class Lake:
    """A feed of files into a table whose key is made."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lake = lakebed.connect(folder / "lake", create=True)
        self.feeds = lakebed.FeedDefinitions(self.lake)
        schema = lakebed.schema_of(row_keys={"id": "string"}, values={"n": "int64"})
        self.lake.create_table("hits", schema)

    def apply(self, path: str = "n", landing: str = "") -> None:
        self.feeds.apply(TEXT.format(folder=self.folder, path=path, landing=landing))
        if self.feeds.standing("hits").wanted == "stopped":
            self.feeds.start("hits")

    def run(self) -> None:
        assert not [done.code for done in lakebed.Feeds(self.lake).run() if done.code]

    def rows(self) -> dict[int, list[str]]:
        found: dict[int, list[str]] = {}
        for row in self.lake.table("hits").query().read_all().to_pylist():
            found.setdefault(row["n"], []).append(row["id"])
        return found

    def position(self) -> KeptPosition:
        (kept,) = self.lake.table("hits").positions()
        return kept


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    given = Lake(tmp_path)
    yield given
    given.lake.close()


def test_a_record_that_is_taken_again_has_the_same_id(lake: Lake) -> None:
    lake.apply()
    (lake.folder / "a.log").write_text('{"n":1}\n{"n":2}\n')
    lake.run()
    before = lake.rows()
    assert [len(ids) for ids in before.values()] == [1, 1]
    assert len({one for ids in before.values() for one in ids}) == 2
    kept = lake.position()
    lake.lake.table("hits").reset_position(
        kept.feed, kept.source_split, to=8, expects=16, who="ann", why="again"
    )
    lake.run()
    assert lake.rows() == {1: before[1], 2: before[2] * 2}


def test_a_replay_and_a_newer_definition_give_the_same_id(lake: Lake) -> None:
    lake.apply("m")
    (lake.folder / "a.log").write_text('{"n":1}\n{"m":2}\n')
    lake.run()
    assert list(lake.rows()) == [2]
    (second,) = lake.rows()[2]
    lake.apply("n")
    assert lake.feeds.replay("hits")[0].tally.stored == 1
    (first,) = lake.rows()[1]
    assert (first[:16], int(first[16:], 16)) == (second[:16], 0)
    assert int(second[16:], 16) == 8


def test_two_connections_of_a_feed_and_its_landing_agree(lake: Lake) -> None:
    lake.apply()
    schema = lakebed.schema_of(row_keys={"id": "string"}, values={"n": "int64"})
    lake.lake.create_table("more", schema)
    lake.feeds.define("connection", "more", {"feed": "hits", "table": "more", "auto_key": "id"})
    (lake.folder / "a.log").write_text('{"n":1}\n')
    lake.run()
    (row,) = lake.lake.table("more").query().read_all().to_pylist()
    assert lake.rows() == {1: [row["id"]]}


def test_a_feed_that_is_made_anew_makes_the_same_ids(lake: Lake) -> None:
    """So a table that keeps the latest by key has each record once."""
    lake.apply()
    (lake.folder / "a.log").write_text('{"n":1}\n')
    lake.run()
    (before,) = lake.rows()[1]
    lake.feeds.stop("hits")
    lake.feeds.drop("hits", cascade=True)
    lake.apply()
    lake.run()
    assert lake.rows() == {1: [before] * 2}


def test_what_has_no_order_has_ids_of_its_landing_table(lake: Lake) -> None:
    """Positions in another landing table count from the beginning again: ids must not."""
    said = {"source": {"push": True}, "decoder": {"format": "json"}}
    lake.feeds.define("feed", "hits", said)
    connection = {"feed": "hits", "table": "hits", "auto_key": "id", "columns": {"n": "n"}}
    lake.feeds.define("connection", "all", connection)
    lake.feeds.start("hits")
    found = []
    for n in (1, 2):
        receiver, _ = receiver_of(lake.lake._app, "hits")
        body = b'{"n":%d}' % n
        length = ("content-length", str(len(body)))
        head = RequestHead("POST", "/hits", [("content-type", "application/json"), length])
        assert receiver.respond(head, lambda _, body=body: body).status == 200
        lake.run()
        found += lake.rows()[n]
        kept = lake.position()
        lake.lake.drop_table("hits_landing")
        lake.lake.table("hits").delete_position(
            kept.feed, kept.source_split, expects=1, who="ann", why="again"
        )
    assert len(set(found)) == 2
    assert len({one[16:] for one in found}) == 1, "both are at position 0"
