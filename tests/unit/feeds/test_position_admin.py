"""What operators see of positions, and how they move them, with a reason that stays (R2)."""

from __future__ import annotations

import random

import pytest

from lakebed.errors import InvalidError
from lakebed.feed_errors import PositionMovedError
from lakebed.feeds.operating.position_admin import (
    DAMAGED,
    KeptPosition,
    KnownGap,
    LedgerRow,
    OperatorMove,
    delete_position,
    gaps,
    ledger,
    positions,
    reset_position,
)
from lakebed.inspection.log_listing import list_log
from lakebed.model.feeds.positions import Position, decode_position, encode_position
from lakebed.model.feeds.tallies import Tally
from lakebed.model.feeds.windows import SplitTime, WindowRules
from lakebed.model.names import ConnectionId, Micros, TableId, TableName, TransactionNumber
from lakebed.statestore.log_entries.feed_changes import Count, Define, RecordGap
from lakebed.statestore.log_entries.position_changes import DropPosition, ResetPosition
from lakebed.statestore.log_entries.transactions import PositionChange
from lakebed.statestore.log_entries.window_changes import Advance
from lakebed.statestore.open_table import OpenTable
from lakebed.statestore.table_state.feed_records import HOUR, errors_in_rows
from lakebed.statestore.table_state.feed_records import connections as known_connections
from lakebed.statestore.table_state.window_records import split_progress, watermark_of
from lakebed.tables.change_table import clear_table
from tests.dsl import TableStory

FEED, OTHER = ConnectionId("feed"), ConnectionId("other")


class Fed:
    """A table with two feeds; the first has taken two source splits."""

    def __init__(self) -> None:
        self.story = TableStory()
        id_, name = TableId("t"), TableName("t")
        self.table = OpenTable(id_=id_, name=name, head=self.story.head, rng=random.Random(0))
        self.story.when_committed(Define(FEED, 3, ("0",)), Define(OTHER, 1))
        self.begin = Micros(self.story.clock.now())
        self.at: dict[str, bytes] = {}
        self.take("0", Position(1, 7, resume=b"r"), Count(FEED, 3, "0", Tally(2, quarantined=2), 2))
        self.take("q", Position(1, b"\x12\x34"))
        said = SplitTime("0", self.begin, caught_up=True)
        more = (
            Count(FEED, 3, "0", Tally(1, filtered=1), 1),
            Advance(FEED, 3, WindowRules(60), (said,)),
        )
        self.take("0", Position(2, 9, "first", b"r"), *more)

    def moved(self, split: str, position: Position) -> PositionChange:
        return PositionChange(f"{FEED}/{split}", self.at.get(split), encode_position(position), 4)

    def take(self, split: str, position: Position, *changes: Count | Advance | RecordGap) -> int:
        change = self.moved(split, position)
        number = self.story.head.commit(self.story.transaction(*changes, positions=[change]))
        self.at[split] = change.value
        return number

    def last(self) -> list[str]:
        (entry,) = list_log(self.story.log, entries_max=1).entries
        return [does for transaction in entry.transactions for does in transaction.does]


@pytest.fixture
def fed() -> Fed:
    return Fed()


def move(expects: int | str | None, split: str = "0", **more: str) -> OperatorMove:
    given = {"feed": FEED, "who": "alice", "why": "two records were spoiled"} | more
    return OperatorMove(source_split=split, expects=expects, **given)


def test_positions_are_listed_with_what_is_known_of_their_source_splits(fed: Fed) -> None:
    first = KeptPosition(
        feed="feed",
        source_split="0",
        next=9,
        revision=2,
        incarnation="first",
        owner=4,
        event_time=fed.begin,
        errors_in_row=1,
    )
    found = positions(fed.table)
    assert found[0] == first
    assert [(p.source_split, p.next, p.event_time) for p in found] == [
        ("0", 9, fed.begin),
        ("q", "1234", None),
    ]
    assert positions(fed.table, OTHER) == []
    with pytest.raises(InvalidError, match="did you mean 'other'"):
        positions(fed.table, "othe")


def test_a_position_that_is_reset_goes_on_there_and_refuses_what_was_under_way(fed: Fed) -> None:
    under_way = fed.story.transaction(positions=[fed.moved("0", Position(3, 12))])
    number = reset_position(fed.table, move(9), to=2)
    with pytest.raises(PositionMovedError):
        fed.story.head.commit(under_way)
    (kept, _) = positions(fed.table)
    assert (kept.next, kept.revision, kept.owner, kept.errors_in_row) == (2, 3, 4, 0)
    assert fed.story.state.head().number == number
    value, _ = fed.story.state.position("feed/0") or (b"", 0)
    assert decode_position(value) == Position(3, 2, "first", is_pending=True)
    fed.at["0"] = value
    fed.take("0", Position(4, 5))


def test_only_a_source_split_with_records_in_quarantine_is_looked_for_there(fed: Fed) -> None:
    reset_position(fed.table, move("1234", "q"), to="00")
    value, _ = fed.story.state.position("feed/q") or (b"", 0)
    assert decode_position(value) == Position(2, b"\0")


def test_the_log_says_who_moved_a_position_and_why(fed: Fed) -> None:
    reset_position(fed.table, move(9), to=2)
    assert fed.last() == [
        "reset the position of feed/0 to 2, revision 3, by alice: two records were spoiled"
    ]
    delete_position(fed.table, move(2, who="bob\n", why="\x1b[2J"))
    assert fed.last() == [r"delete the position of feed/0, by bob\n: \x1b[2J"]


def test_what_an_operator_did_not_see_is_not_moved(fed: Fed) -> None:
    before = fed.story.state.digest()
    for expects in (8, None, "9a"):
        with pytest.raises(PositionMovedError, match="found=9"):
            reset_position(fed.table, move(expects), to=2)
        with pytest.raises(PositionMovedError):
            delete_position(fed.table, move(expects))
    for wrong in (move(9, who=""), move(9, why=" "), move(9, why="x" * 1_001), move(9, feed="no")):
        with pytest.raises(InvalidError):
            reset_position(fed.table, wrong, to=2)
    for to in (-1, "abc", 1 << 63):
        with pytest.raises(InvalidError, match="number from 0"):
            reset_position(fed.table, move(9), to=to)
    with pytest.raises(InvalidError, match="hexadecimal"):
        reset_position(fed.table, move("1234", "q"), to="later")
    assert fed.story.state.digest() == before


def test_the_log_refuses_what_was_planned_on_an_older_position(fed: Fed) -> None:
    old, value = fed.at["0"], encode_position(Position(3, 2))
    fed.take("0", Position(3, 11))
    for change in (
        ResetPosition(FEED, "0", old, value, "alice", "why"),
        DropPosition(FEED, "0", old, "alice", "why"),
        ResetPosition(FEED, "0", None, encode_position(Position(1, 2)), "alice", "why"),
    ):
        with pytest.raises(PositionMovedError):
            fed.story.when_committed(change)
    broken = ResetPosition(FEED, "0", fed.at["0"], b"\0", "alice", "why")
    with pytest.raises(InvalidError, match="not a position"):
        fed.story.when_committed(broken)
    skips = ResetPosition(FEED, "0", fed.at["0"], value, "alice", "why")
    with pytest.raises(InvalidError, match="next revision"):
        fed.story.when_committed(skips)


def test_a_race_with_the_feed_is_decided_by_the_log(fed: Fed) -> None:
    operator = fed.story.another_head()
    operator.follow()
    fed.take("0", Position(3, 11))
    table = OpenTable(id_=TableId("t"), name=TableName("t"), head=operator, rng=random.Random(1))
    with pytest.raises(PositionMovedError, match="found=11"):
        reset_position(table, move(9), to=2)


def test_positions_that_a_source_does_not_count_and_new_ones_can_be_set(fed: Fed) -> None:
    reset_position(fed.table, move("1234", "q"), to="12")
    reset_position(fed.table, move(None, "new"), to=40)
    assert [(p.source_split, p.next, p.revision) for p in positions(fed.table)] == [
        ("0", 9, 2),
        ("new", 40, 1),
        ("q", "12", 2),
    ]


def test_a_source_split_that_is_deleted_is_taken_from_its_beginning(fed: Fed) -> None:
    under_way = fed.story.transaction(positions=[fed.moved("0", Position(3, 12))])
    delete_position(fed.table, move(9))
    with pytest.raises(Exception, match="not there yet"):
        fed.story.head.commit(under_way)
    assert [p.source_split for p in positions(fed.table)] == ["q"]
    (known, _) = known_connections(fed.story.state)
    assert split_progress(fed.story.state, known) == []
    assert errors_in_rows(fed.story.state, known) == {}
    with pytest.raises(InvalidError, match="no such position"):
        delete_position(fed.table, move(None))
    fed.at.clear()
    fed.take("0", Position(1, 3))


def test_a_position_that_cannot_be_read_can_be_deleted(fed: Fed) -> None:
    fed.story.state.connection.execute("UPDATE positions SET value = x'00' WHERE name = 'feed/0'")
    delete_position(fed.table, move(DAMAGED))
    assert [p.source_split for p in positions(fed.table)] == ["q"]


def test_ledger_and_gaps_are_listed_by_source_split_and_hour(fed: Fed) -> None:
    fed.story.clock.advance(HOUR // 1_000_000)
    gap = RecordGap(FEED, 3, "0", b"9", b"\x00", "retention\n")
    number = fed.take("0", Position(3, 20), gap, Count(FEED, 3, "0", Tally(4, discarded=4)))
    hour = Micros(fed.begin // HOUR * HOUR)
    rows = [(row.source_split, row.at, row.tally) for row in ledger(fed.table)]
    assert rows == [
        ("0", hour, Tally(3, quarantined=2, filtered=1)),
        ("0", hour + HOUR, Tally(4, discarded=4)),
    ]
    assert isinstance(ledger(fed.table, FEED)[0], LedgerRow)
    assert ledger(fed.table, OTHER) == []
    assert gaps(fed.table) == [
        KnownGap(
            feed="feed",
            source_split="0",
            first="9",
            end="00",
            number=TransactionNumber(number),
            reason="retention\n",
        )
    ]


def test_a_plain_clear_keeps_positions_and_one_from_the_start_forgets_them(fed: Fed) -> None:
    clear_table(fed.table, None)
    assert [p.next for p in positions(fed.table)] == [9, "1234"]
    assert ledger(fed.table) != []
    clear_table(fed.table, None, from_start=True)
    assert positions(fed.table) == []
    assert ledger(fed.table) == []
    assert fed.last() == ["clear the table", "let all feeds begin their sources again"]
    state = fed.story.state
    (known, other) = known_connections(state)
    assert (known.version, other.version) == (3, 1)
    assert watermark_of(state, known).time is None
    waited_for = [(split.source_split, split.event_time) for split in split_progress(state, known)]
    assert waited_for == [("0", None)], "as at the beginning"
    fed.at.clear()
    fed.take("0", Position(1, 4), Count(FEED, 3, "0", Tally(4, filtered=4)))
