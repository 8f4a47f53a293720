"""A connection that reads a landing table holds up neither what lands nor what the table loses
(protocol R22); what it has missed it is told, with both positions, and never passes over (R15)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import lakebed
from lakebed.bootstrap.feeds.pipelines import landed_feed
from lakebed.bootstrap.feeds.receivers import receiver_of
from lakebed.feeds import land_records
from lakebed.feeds.known_definitions import read_definitions
from lakebed.feeds.owned_splits import OwnsAll
from lakebed.feeds.run_feeds import FeedDone
from lakebed.landing import landing_source
from lakebed.landing.push.receiver import RequestHead

TEXT = """
[feed.hits]
source = {{ push = true }}
decoder = {{ format = "json" }}
[connection.all]
feed = "hits"
table = "hits"
policy = "Mine"
[policy.Mine]
extends = "FaultTolerant"
gap = "{gap}"
"""


class Child:
    """A lake with a feed that is landed, and a connection that reads the landing table."""

    def __init__(self, folder: Path, gap: str = "record") -> None:
        self.lake = lakebed.connect(folder / "lake", create=True)
        self.app = self.lake._app
        self.lake.create_table("hits", lakebed.schema_of(row_keys={"n": "int64"}, values={}))
        self.feeds = lakebed.FeedDefinitions(self.lake)
        self.gap = gap
        self.apply()
        self.feeds.start("hits")
        self.errors: list[str] = []

    def apply(self) -> None:
        self.feeds.apply(TEXT.format(gap=self.gap))

    def push(self, *numbers: int) -> None:
        receiver, _ = receiver_of(self.app, "hits")
        body = b"".join(b'{"n":%d}\n' % n for n in numbers)
        said = [("content-type", "application/x-ndjson"), ("content-length", str(len(body)))]
        assert receiver.respond(RequestHead("POST", "/hits", said), lambda _: body).status == 200

    def run(self) -> dict[str, FeedDone]:
        def failed(done: FeedDone, error: Exception) -> None:
            self.errors.append(str(error))

        return {done.name: done for done in lakebed.Feeds(self.lake).run(failed=failed)}

    @property
    def landing(self) -> lakebed.Table:
        return self.lake.table("hits_landing")

    def lose(self, begin: int, end: int) -> None:
        (split,) = {row["source_split"] for row in self.landing.query().read_all().to_pylist()}
        keys = [(split, position) for position in range(begin, end)]
        assert self.landing.delete(keys=keys).rows == end - begin

    def rows(self) -> list[int]:
        return self.lake.table("hits").query().read_all()["n"].to_pylist()

    def gaps(self) -> list[tuple[str, str]]:
        return [(gap.first, gap.end) for gap in self.lake.table("hits").gaps()]


@pytest.fixture
def child(tmp_path: Path) -> Iterator[Child]:
    given = Child(tmp_path)
    yield given
    given.lake.close()


def behind(child: Child, *numbers: int) -> None:
    """Let the parent land while the child stands behind two of its records."""
    child.push(0, 1)
    child.run()
    child.push(*numbers)
    parent = landed_feed(
        child.app, read_definitions(child.app.feeds.definitions).feed("hits"), lambda *_: OwnsAll()
    )
    for count in range(6):
        parent.turn(is_draining=count % 2 == 1)
    parent.close()
    (kept,) = child.landing.positions()
    assert kept.next == 2 + len(numbers)


def test_a_child_that_is_behind_holds_up_nothing_and_is_told_what_it_missed(child: Child) -> None:
    behind(child, 2, 3, 4, 5)
    child.lose(0, 5)
    done = child.run()
    assert (child.errors, done["all"].tally.stored) == ([], 1)
    assert (child.rows(), child.gaps()) == ([0, 1, 5], [("2", "5")])
    child.push(6)
    child.run()
    assert child.rows() == [0, 1, 5, 6]


@pytest.mark.parametrize(
    ("lost", "gaps", "rows"),
    [
        ((2, 3), [("2", "3")], [0, 1, 3, 4, 5]),
        ((3, 5), [("3", "5")], [0, 1, 2, 5]),
        ((4, 6), [("4", "6")], [0, 1, 2, 3]),
        ((2, 6), [("2", "6")], [0, 1]),
    ],
)
def test_a_gap_is_told_wherever_it_lies(
    child: Child, lost: tuple[int, int], gaps: list[tuple[str, str]], rows: list[int]
) -> None:
    behind(child, 2, 3, 4, 5)
    child.lose(*lost)
    child.run()
    assert (child.rows(), child.gaps()) == (rows, gaps)
    child.push(9)
    child.run()
    assert (child.rows(), child.gaps()) == ([*rows, 9], gaps)


def test_a_policy_that_records_no_gap_stops_the_child_and_not_its_parent(tmp_path: Path) -> None:
    child = Child(tmp_path, gap="fail")
    behind(child, 2, 3, 4, 5)
    child.lose(3, 5)
    done = child.run()
    assert (done["all"].code, done["hits"].code) == ("position-gone", "")
    assert "wanted=3 oldest=5" in child.errors[0]
    assert child.rows() == [0, 1, 2], "what comes before is committed"
    child.push(6)
    assert child.run()["hits"].tally.read == 1
    child.gap = "record"
    child.apply()
    child.run()
    assert (child.rows(), child.gaps()) == ([0, 1, 2, 5, 6], [("3", "5")])
    child.lake.close()


def age_off(child: Child) -> None:
    old = lakebed.Processing(filter=lakebed.field("position") >= 4)
    child.landing.change_processing(old)


def clear(child: Child) -> None:
    child.landing.clear()


@pytest.mark.parametrize(("lose", "end", "left"), [(age_off, "4", [4, 5]), (clear, "6", [])])
def test_whatever_takes_the_rows_it_is_told(
    child: Child, lose: Callable[[Child], None], end: str, left: list[int]
) -> None:
    behind(child, 2, 3, 4, 5)
    lose(child)
    child.run()
    assert (child.rows(), child.gaps()) == ([0, 1, *left], [("2", end)])


def from_start(child: Child) -> None:
    child.landing.clear(from_start=True)


def dropped(child: Child) -> None:
    child.lake.drop_table("hits_landing")


@pytest.mark.parametrize("more", [1, 6])
@pytest.mark.parametrize("begin_again", [from_start, dropped])
def test_a_landing_that_begins_again_is_no_other_part_of_the_same(
    child: Child, begin_again: Callable[[Child], None], more: int
) -> None:
    """Its positions count from the beginning: also where it has come further than the child was."""
    child.push(0, 1, 2)
    child.run()
    begin_again(child)
    child.push(*range(10, 10 + more))
    for _ in range(2):
        child.run()
        assert child.rows() == [0, 1, 2]
    assert "made anew, or cleared from the start" in child.errors[0]
    (kept,) = child.lake.table("hits").positions()
    child.lake.table("hits").delete_position(
        kept.feed, kept.source_split, expects=3, who="ann", why="it begins again"
    )
    child.feeds.stop("hits")
    child.feeds.start("hits")
    child.run()
    assert child.rows() == [0, 1, 2, *range(10, 10 + more)]


def test_a_connection_that_comes_later_begins_with_the_first_record_that_there_is(
    child: Child,
) -> None:
    child.push(0, 1, 2, 3)
    child.run()
    child.lose(0, 2)
    child.feeds.disconnect("all")
    child.apply()
    child.run()
    assert (child.rows(), child.gaps()) == ([0, 1, 2, 2, 3, 3], [])


class Redelivered:
    """Lands some messages twice, as a queue delivers them again: they leave positions without
    rows."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.again = set[int]()
        there = land_records.records_in_table

        def known(count: int, before: Any) -> Any:  # noqa: ANN401 - as it is
            found = there(count, before)
            found[[index for index in self.again if index < count]] = True
            return found

        monkeypatch.setattr(land_records, "records_in_table", known)


def test_what_the_landing_knew_already_is_no_gap(
    child: Child, monkeypatch: pytest.MonkeyPatch
) -> None:
    redelivered = Redelivered(monkeypatch)
    redelivered.again = {0, 2}
    behind(child, 2, 3, 4, 5)
    child.run()
    assert (child.rows(), child.gaps(), child.errors) == ([1, 3, 5], [], [])
    redelivered.again = {1}
    child.push(6, 7, 8)
    child.feeds.stop("hits")
    child.feeds.start("hits")
    child.run()
    assert (child.rows(), child.gaps()) == ([1, 3, 5, 6, 8], [])


def test_among_what_it_knew_already_a_lost_row_is_found(
    child: Child, monkeypatch: pytest.MonkeyPatch
) -> None:
    redelivered = Redelivered(monkeypatch)
    redelivered.again = {0, 2}
    behind(child, 2, 3, 4, 5)  # rows at 1, 3 and 5
    child.lose(3, 4)
    child.run()
    assert (child.rows(), child.gaps()) == ([1, 5], [("2", "5")])


def test_what_the_log_does_not_say_any_longer_is_told_and_not_passed_over(
    child: Child, monkeypatch: pytest.MonkeyPatch
) -> None:
    redelivered = Redelivered(monkeypatch)
    redelivered.again = {0, 2}
    behind(child, 2, 3, 4, 5)
    redelivered.again = set()
    monkeypatch.setattr(
        landing_source.LandedRanges, "touching", lambda *_: []
    )  # as if it were truncated
    child.run()
    assert (child.rows(), child.gaps()) == ([1, 3, 5], [("2", "3"), ("4", "5")])
