"""The watermark only rises, by event times and log time alone (R18)."""

import msgspec
import pytest

from lakebed.errors import InvalidError
from lakebed.feed_errors import DefinitionMovedError
from lakebed.model.feeds.tallies import Tally
from lakebed.model.feeds.windows import SplitTime, WindowCount, WindowRules
from lakebed.model.names import Micros
from lakebed.statestore.log_entries.feed_changes import (
    Count,
    Define,
    TakeItems,
)
from lakebed.statestore.log_entries.file_changes import AddFiles
from lakebed.statestore.log_entries.window_changes import Advance
from lakebed.statestore.table_state.window_records import (
    split_progress,
)
from tests.dsl.windowed_table import FEED, RULES, SECOND, WindowedTable


def test_the_watermark_is_that_of_the_source_split_that_is_furthest_behind() -> None:
    table = WindowedTable("0", "1")
    table.take("0", 25)
    assert table.seconds() is None, "the other one has not come yet"
    table.take("1", 12, 7)
    assert table.seconds() == 12
    table.take("1", 40)
    assert table.seconds() == 25
    table.take("1", 3)
    assert table.seconds() == 25


def test_disorder_keeps_the_watermark_behind_and_never_takes_it_back() -> None:
    table = WindowedTable(rules=msgspec.structs.replace(RULES, disorder_seconds=5))
    table.take("0", 25)
    assert table.seconds() == 20
    table.rules = msgspec.structs.replace(RULES, disorder_seconds=15)
    table.take("0", 26)
    assert table.seconds() == 20


def test_source_splits_that_a_feed_begins_with_are_waited_for_until_they_are_idle() -> None:
    table = WindowedTable("0", "1")
    table.take("0", 25)
    for _ in range(3):
        table.say(SplitTime("1", caught_up=True))
        assert table.seconds() is None
        table.story.clock.advance(25)
    table.say(SplitTime("1", caught_up=True))
    assert table.seconds() == 25


def test_an_owner_that_says_nothing_any_more_makes_no_source_split_idle() -> None:
    table = WindowedTable("0", "1")
    table.say(SplitTime("1", caught_up=True))
    table.story.clock.advance(7_200)
    table.take("0", 25)
    assert table.seconds() is None, "it said so once, and then died"
    table.say(SplitTime("1", caught_up=True))
    assert table.seconds() is None, "what it said two hours ago counts no more"


def test_an_idle_source_split_holds_the_watermark_again_when_its_owner_falls_silent() -> None:
    table = WindowedTable("0", "1")
    table.take("1", 3)
    for _ in range(4):
        table.say(SplitTime("1", caught_up=True))
        table.story.clock.advance(30)
    table.take("0", 25)
    assert table.seconds() == 25
    table.story.clock.advance(7_200)
    table.take("0", 50)
    assert table.seconds() == 25, "nobody has looked into the other one for hours"
    table.take("1", 40)
    assert table.seconds() == 40


def test_records_end_idleness_also_when_nothing_lies_behind_them() -> None:
    table = WindowedTable("0", "1")
    for seconds in (0, 50, 50):
        table.story.clock.advance(seconds)
        table.say(SplitTime("1", caught_up=True))
    table.take("1", 8, caught_up=True)
    table.take("0", 25)
    assert table.seconds() == 8
    (_, one) = split_progress(table.story.state, table.connection)
    assert one.since == one.said


def test_where_all_source_splits_are_idle_all_that_was_reached_has_been_taken() -> None:
    table = WindowedTable("0", "1")
    table.take("0", 25)
    table.take("1", 7)
    for _ in range(4):
        table.say(SplitTime("0", caught_up=True), SplitTime("1", caught_up=True))
        table.story.clock.advance(30)
    assert table.seconds() == 25


def test_a_source_split_that_comes_later_begins_at_the_watermark() -> None:
    table = WindowedTable("0")
    table.take("0", 25)
    table.take("1", 3)
    assert table.seconds() == 25
    table.take("0", 60)
    assert table.seconds() == 25, "it holds the watermark where it began"
    table.story.when_committed(Define(FEED, 1, ("0", "2")))
    table.take("1", 55)
    assert table.seconds() == 25, "one that is named later holds it, too"
    table.take("2", 50)
    assert table.seconds() == 50


def test_a_source_split_that_ended_is_waited_for_no_more() -> None:
    table = WindowedTable("0", "1", "gone")
    table.take("0", 25)
    table.take("1", 60)
    table.say(SplitTime("gone", ended=True))
    assert table.seconds() == 25
    table.commit(
        Advance(FEED, 1, RULES, (SplitTime("0", ended=True), SplitTime("1", ended=True))),
        positions=[],
    )
    assert table.seconds() == 60
    assert split_progress(table.story.state, table.connection) == []
    table.take("0", 5)
    assert table.seconds() == 60


def test_event_times_too_far_ahead_of_log_time_are_refused() -> None:
    table = WindowedTable()
    now = table.story.clock.now()
    table.story.clock.advance(600)
    ahead = Micros(now + 4_200 * SECOND)
    late = Micros(ahead + SECOND)
    table.refused(InvalidError, Advance(FEED, 1, RULES, (SplitTime("0", late),)))
    window = WindowCount(Micros((ahead // (10 * SECOND) + 1) * 10 * SECOND), 1)
    added = (
        AddFiles(table.story.new_files("all", a=1)),
        Count(FEED, 1, "0", Tally(read=1, stored=1)),
    )
    table.refused(InvalidError, Advance(FEED, 1, RULES, (SplitTime("0"),), (window,)), *added)
    table.say(SplitTime("0", ahead))
    assert table.watermark.time == ahead


@pytest.mark.parametrize(
    "wrong",
    [
        {"rules": WindowRules(0)},
        {"rules": WindowRules(86_401)},
        {"rules": WindowRules(10, idle_seconds=0)},
        {"rules": WindowRules(10, seal_seconds=-1)},
        {"splits": ()},
        {"splits": (SplitTime("0"), SplitTime("0"))},
        {"splits": (SplitTime("0", Micros(-(1 << 60))),)},
        {"splits": (SplitTime(""),)},
        {"windows": (WindowCount(Micros(10 * SECOND)), WindowCount(Micros(0), 1))},
        {"windows": (WindowCount(Micros(0)),)},
        {"windows": (WindowCount(Micros(0), -1, 2),)},
        {"windows": (WindowCount(Micros(1), 1),)},
        {"windows": (WindowCount(Micros(-(1 << 62) // 10 * 10), 1),)},
        {"windows": (WindowCount(Micros(0), 1, 1),)},
        {"windows": (WindowCount(Micros(0), 1),)},
        {"version": 2},
    ],
    ids=str,
)
def test_what_is_no_event_time_is_refused_and_changes_nothing(wrong: dict[str, object]) -> None:
    table = WindowedTable()
    plain = Advance(FEED, 1, RULES, (SplitTime("0", Micros(SECOND)),))
    table.refused(InvalidError, msgspec.structs.replace(plain, **wrong))


def test_event_times_come_with_the_records_that_have_them() -> None:
    table = WindowedTable()
    for said in (SplitTime("0", table.at(1)), SplitTime("0", caught_up=True)):
        with pytest.raises(InvalidError, match="not taken"):
            table.commit(Advance(FEED, 1, RULES, (said,)), positions=table.moved("1"))
    items = TakeItems(FEED, (bytes(16),))
    table.commit(items, Advance(FEED, 1, RULES, (SplitTime("q", table.at(1)),)), positions=[])
    once = Advance(FEED, 1, RULES, (SplitTime("0", table.at(2)),))
    table.refused(InvalidError, once, once)
    table.story.when_committed(Define(FEED, 2))
    table.refused(DefinitionMovedError, once)
