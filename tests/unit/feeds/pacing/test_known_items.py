"""Items of a table that has many are forgotten, and never the newest."""

import random

import pytest

from lakebed.bootstrap.feeds import policies
from lakebed.feeds.committed import FeedConnection
from lakebed.feeds.pacing.known_items import ForgottenItems, OldItems
from lakebed.model.names import ConnectionId, TableId, TableName
from lakebed.statestore.log_entries.feed_changes import Define, TakeItems
from lakebed.statestore.open_table import OpenTable
from lakebed.statestore.table_state.feed_records import connection_of, taken_items
from tests.dsl import TableStory
from tests.unit.feeds.pacing.test_landed_items import feed_of

FEED, OTHER = ConnectionId("feed"), ConnectionId("other")
SPARED, ONCE = 6, 3_600


class Taken:
    """A table into which one item comes each ten minutes."""

    def __init__(self) -> None:
        self.story = story = TableStory()
        story.when_committed(Define(FEED, 1), Define(OTHER, 1))
        self.table = OpenTable(
            id_=TableId("t"), name=TableName("t"), head=story.head, rng=random.Random(1)
        )
        self.count = 0

    def take(self, count: int, *, seconds: int = 600) -> None:
        for _ in range(count):
            self.story.clock.advance(seconds)
            self.story.when_committed(TakeItems(FEED, (item(self.count),)))
            self.count += 1

    def known(self, of: ConnectionId = FEED) -> list[int]:
        known = connection_of(self.story.state, of)
        assert known is not None
        found = taken_items(self.story.state, known, map(item, range(self.count)))
        return [int.from_bytes(one, "big") for one in found]

    def forget(self, old: ForgottenItems) -> int:
        """Return how many entries that took."""
        before = self.story.state.head().number
        old.forget(self.table, FeedConnection(FEED, 1))
        return self.story.state.head().number - before


def item(number: int) -> bytes:
    return number.to_bytes(16, "big")


@pytest.fixture
def taken() -> Taken:
    return Taken()


def test_nothing_is_forgotten_before_there_is_half_as_much_again(taken: Taken) -> None:
    old = OldItems(ONCE, spared=SPARED)
    taken.take(SPARED + SPARED // 2)
    taken.story.clock.advance(1_000 * ONCE)
    assert taken.forget(old) == 0
    assert len(taken.known()) == 9


def test_the_newest_stay_however_old_they_are(taken: Taken) -> None:
    old = OldItems(ONCE, spared=SPARED)
    taken.take(SPARED + SPARED // 2 + 1)
    taken.story.clock.advance(1_000 * ONCE)
    taken.story.when_committed(TakeItems(FEED, (item(100),)))
    assert taken.forget(old) == 1
    assert taken.known()[-SPARED:] == list(range(10 - SPARED, 10))
    assert len(taken.known()) <= SPARED + 2, (
        "and few others: one more for each that shares a minute"
    )
    assert taken.forget(old) == 0


def test_what_was_taken_lately_stays_however_much_it_is(taken: Taken) -> None:
    old = OldItems(ONCE, spared=SPARED)
    taken.take(5)
    taken.take(1, seconds=2 * ONCE)
    taken.take(29, seconds=61)
    assert taken.forget(old) == 1
    assert taken.known()[-30:] == list(range(5, 35))
    assert len(taken.known()) < 33
    taken.take(1, seconds=2 * ONCE)
    assert taken.forget(old) == 1
    assert SPARED <= len(taken.known()) <= SPARED + 2


def test_a_burst_is_looked_at_though_no_time_has_passed(taken: Taken) -> None:
    """What is older than `once_seconds` is the same at each look; what is spared is not."""
    old = OldItems(ONCE, spared=SPARED)
    taken.take(SPARED)
    taken.take(1, seconds=2 * ONCE)
    assert taken.forget(old) == 0, "there is room"
    taken.take(SPARED // 2, seconds=61)
    assert taken.forget(old) == 1
    assert taken.known()[-SPARED:] == list(range(4, 10))
    taken.take(SPARED, seconds=61)
    assert taken.forget(old) == 1, "also after some were forgotten"
    assert taken.known() == list(range(6, 16)), "all that came within the hour, and no other"


def test_items_of_another_connection_count_for_nothing(taken: Taken) -> None:
    old = OldItems(ONCE, spared=SPARED)
    taken.take(SPARED)
    taken.story.when_committed(TakeItems(OTHER, tuple(map(item, range(100)))))
    taken.story.clock.advance(1_000 * ONCE)
    taken.story.when_committed(Define(OTHER, 2))
    assert taken.forget(old) == 0
    assert len(taken.known()) == SPARED
    assert len(taken.known(OTHER)) == SPARED


def test_without_any_that_are_spared_all_that_is_old_goes(taken: Taken) -> None:
    old = OldItems(ONCE)
    taken.take(3)
    assert taken.forget(old) == 0
    taken.take(1, seconds=2 * ONCE)
    assert taken.forget(old) == 1
    assert taken.known() == [3]


def test_items_of_an_adaptor_are_forgotten_by_their_age_alone(taken: Taken) -> None:
    """What it recognises by itself is not known: so its items stay as long as ids of jobs."""
    feed = feed_of('kind = "theirs", ordered = false').feed
    old = policies.old_items_of(feed, taken.table)
    assert old is not None
    taken.take(40, seconds=80_000)
    assert taken.forget(old) == 1
    assert taken.known() == list(range(40 - 30 * 86_400 // 80_000 - 1, 40))
    in_order = feed_of('kind = "theirs"').feed
    assert policies.old_items_of(in_order, taken.table) is None
