"""What feeds say in the log: whose rows they are (R17), what became of each record (R12), which
items were taken (R8), which records were gone (R15)."""

from pathlib import Path

import pytest

from lakebed.errors import InvalidError, LakebedError, TableBusyError
from lakebed.feed_errors import DefinitionMovedError, ItemsTakenError
from lakebed.model.feeds.tallies import Tally
from lakebed.model.names import ConnectionId, TableId, TransactionNumber
from lakebed.statestore.log_entries.commit_ledger import check_ledger
from lakebed.statestore.log_entries.feed_changes import (
    Count,
    Define,
    ForgetConnection,
    ForgetItems,
    RecordGap,
    TakeItems,
)
from lakebed.statestore.log_entries.file_changes import AddFiles, RaiseFloor
from lakebed.statestore.log_entries.table_changes import DropTable
from lakebed.statestore.log_entries.transactions import Change
from lakebed.statestore.snapshots import Snapshots
from lakebed.statestore.table_state import feed_records
from lakebed.statestore.table_state.feed_records import (
    GAPS_KEPT,
    HOUR,
    Connection,
    connection_of,
    connections,
    gaps_of,
    ledger_of,
    positions_of,
    taken_items,
    taken_items_of,
)
from tests.dsl import TableStory
from tests.dsl.table_story import next_position

FEED, OTHER = ConnectionId("feed"), ConnectionId("feed0")
HOUR_SECONDS = HOUR // 1_000_000


def item(number: int) -> bytes:
    return number.to_bytes(16, "big")


class FedTable:
    """A table that a feed fills from one source split."""

    def __init__(self, *, version: int = 1) -> None:
        self.story = TableStory()
        self.story.when_committed(Define(FEED, version))
        self.before: bytes | None = None
        self.next = 0

    def commit(self, *changes: Change, moves: bool = True, split: str = "0") -> int:
        self.next += 1
        position = next_position(f"{FEED}/{split}", self.before, self.next)
        positions = [position] if moves else []
        number = self.story.head.commit(self.story.transaction(*changes, positions=positions))
        self.before = position.value if moves else self.before
        return number

    def refused(self, kind: type[LakebedError], *changes: Change, moves: bool = True) -> None:
        """Try what is refused, and see that nothing was written."""
        before, state = self.story.log.appended, self.story.state.digest()
        with pytest.raises(kind) as caught:
            self.commit(*changes, moves=moves)
        assert type(caught.value) is kind
        assert self.story.log.appended == before
        assert self.story.state.digest() == state

    def connection(self, id_: ConnectionId = FEED) -> Connection:
        known = connection_of(self.story.state, id_)
        assert known is not None
        return known

    def ledger(self) -> list[tuple[str, int, Tally]]:
        return list(ledger_of(self.story.state, self.connection()))


@pytest.fixture
def table() -> FedTable:
    return FedTable()


def rows(table: FedTable, count: int) -> AddFiles:
    return AddFiles(table.story.new_files("all", **{f"f{table.next}": count}))


def test_records_are_counted_with_their_rows_and_their_position(table: FedTable) -> None:
    hour = table.story.clock.now() // HOUR * HOUR
    table.commit(rows(table, 3), Count(FEED, 1, "0", Tally(read=5, stored=3, filtered=2, bytes=9)))
    table.commit(rows(table, 1), Count(FEED, 1, "0", Tally(read=1, stored=1, bytes=2)))
    table.commit(Count(FEED, 1, "0", Tally(read=4, quarantined=1, deduplicated=3)))
    sums = Tally(read=10, stored=4, filtered=2, quarantined=1, deduplicated=3, bytes=11)
    assert table.ledger() == [("0", hour, sums)]
    ((split, position, owner),) = positions_of(table.story.state, FEED)
    assert (split, position.next, position.revision, owner) == ("0", 3, 3, 0)


@pytest.mark.parametrize(
    "tally",
    [
        Tally(read=2, stored=1),
        Tally(read=1, stored=2),
        Tally(read=1, stored=2, filtered=-1),
        Tally(read=1, stored=1, bytes=-1),
        Tally(read=0, stored=0),
        Tally(read=2, stored=2),
    ],
    ids=str,
)
def test_a_ledger_that_is_not_that_of_the_rows_is_refused(table: FedTable, tally: Tally) -> None:
    table.refused(InvalidError, rows(table, 1), Count(FEED, 1, "0", tally))


def test_a_table_that_merges_rows_may_hold_fewer() -> None:
    counts = [Count(FEED, 1, "0", Tally(read=5, stored=5))]
    check_ledger(counts, moved=["feed/0"], rows=3, merges_rows=True)
    with pytest.raises(InvalidError, match="not that of the rows"):
        check_ledger(counts, moved=["feed/0"], rows=3, merges_rows=False)
    with pytest.raises(InvalidError, match="not that of the rows"):
        check_ledger(counts, moved=["feed/0"], rows=6, merges_rows=True)


def test_records_come_from_somewhere_and_are_counted_once(table: FedTable) -> None:
    one = Count(FEED, 1, "0", Tally(read=1, filtered=1))
    table.refused(InvalidError, one, moves=False)
    table.refused(InvalidError, Count(FEED, 1, "1", Tally()))
    table.refused(InvalidError, one, one)
    table.refused(InvalidError, RecordGap(FEED, 1, "0", b"1", b"5", "gone"), moves=False)
    table.commit(TakeItems(FEED, (item(1),)), Count(FEED, 1, "q", Tally(read=1, filtered=1)))


def test_rows_of_an_older_definition_do_not_land_behind_a_newer_one(table: FedTable) -> None:
    late = Count(FEED, 1, "0", Tally(read=1, stored=1))
    table.story.when_committed(Define(FEED, 3))
    table.refused(DefinitionMovedError, rows(table, 1), late)
    table.refused(DefinitionMovedError, RecordGap(FEED, 2, "0", b"", b"", ""))
    table.refused(InvalidError, Count(FEED, 4, "0", Tally()))
    table.commit(Define(FEED, 4), Count(FEED, 4, "0", Tally()))
    with pytest.raises(DefinitionMovedError):
        table.story.when_committed(Define(FEED, 3))
    table.story.when_committed(Define(FEED, 4))
    assert connections(table.story.state) == [Connection(FEED, 1, 4, TransactionNumber(2))]


def test_what_is_of_no_known_connection_is_refused(table: FedTable) -> None:
    for change in (
        Count(OTHER, 1, "0", Tally()),
        TakeItems(OTHER, (item(1),)),
        RecordGap(OTHER, 1, "0", b"", b"", ""),
        ForgetConnection(OTHER),
    ):
        with pytest.raises((DefinitionMovedError, InvalidError)):
            table.commit(change)
    for wrong in (Define(ConnectionId("a/b"), 1), Define(OTHER, 0)):
        table.refused(InvalidError, wrong)


def test_an_item_is_taken_once_until_it_is_forgotten(table: FedTable) -> None:
    table.commit(TakeItems(FEED, (item(1), item(2))), moves=False)
    table.refused(ItemsTakenError, TakeItems(FEED, (item(3), item(2))), rows(table, 1))
    known = table.connection()
    wanted = [item(n) for n in (3, 2, 1)]
    assert taken_items(table.story.state, known, wanted) == [item(2), item(1)]
    second = table.commit(TakeItems(FEED, (item(3),)), moves=False)
    table.refused(InvalidError, ForgetItems(TransactionNumber(second)))
    floor = RaiseFloor(TransactionNumber(second))
    table.commit(floor, ForgetItems(TransactionNumber(second)), moves=False)
    assert taken_items(table.story.state, known, wanted) == [item(3)]
    table.commit(TakeItems(FEED, (item(1),)), moves=False)


@pytest.mark.parametrize("items", [(), (item(1), item(1)), (b"short",)], ids=repr)
def test_items_without_names_are_refused(table: FedTable, items: tuple[bytes, ...]) -> None:
    table.refused(InvalidError, TakeItems(FEED, items))


def test_items_are_found_by_what_they_begin_with() -> None:
    table = FedTable()
    low, high = bytes(16), b"\xff" * 16
    some = [b"key-one." + bytes(8), b"key-one." + b"\xff" * 8, b"key-two." + bytes(8), low, high]
    table.commit(TakeItems(FEED, tuple(some)))
    known = connection_of(table.story.state, FEED)
    assert known is not None

    def found(prefix: bytes, limit: int = 9) -> list[bytes]:
        return taken_items_of(table.story.state, known, prefix, limit)

    assert found(b"key-one.") == some[:2]
    assert found(b"key-one.", 1) == some[:1]
    assert found(b"key-two.") == [some[2]]
    assert found(some[2]) == [some[2]]
    assert found(b"\xff" * 8) == [high]
    assert found(bytes(8)) == [low]
    assert found(b"key-thr.") == []
    assert len(found(b"")) == 5
    table.commit(Define(OTHER, 1))
    other = connection_of(table.story.state, OTHER)
    assert other is not None
    assert taken_items_of(table.story.state, other, b"", 9) == []


def test_items_of_one_connection_are_bounded(
    table: FedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TakeItems, "MAX", 3)
    table.commit(TakeItems(FEED, (item(1), item(2))))
    table.refused(TableBusyError, TakeItems(FEED, (item(3), item(4))))
    table.commit(Define(OTHER, 1), TakeItems(OTHER, (item(1), item(2))))


def test_gaps_are_kept_the_newest_of_them(table: FedTable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed_records, "GAPS_KEPT", 2)
    assert GAPS_KEPT == 1_000
    for number in range(3):
        gap = RecordGap(FEED, 1, "0", item(number), item(number + 5), "no longer kept")
        table.commit(gap)
    found = gaps_of(table.story.state, table.connection())
    assert [gap.first for gap in found] == [item(1), item(2)]
    assert found[0].reason == "no longer kept"


def test_old_hours_of_the_ledger_become_days_and_old_days_one_row(table: FedTable) -> None:
    one = Count(FEED, 1, "0", Tally(read=1, filtered=1, bytes=10))
    hours = 24 * 120
    for _ in range(hours):
        table.commit(one)
        table.story.clock.advance(HOUR_SECONDS)
    found = table.ledger()
    assert sum(tally.read for _, _, tally in found) == hours
    assert sum(tally.bytes for _, _, tally in found) == 10 * hours
    assert len(found) <= 1 + 100 + 2 + 24 * 4
    times = [at // HOUR for _, at, _ in found]
    assert times[0] == 0
    now = times[-1]
    assert all(at % 24 == 0 for at in times if at < now - 72)
    assert {now - n for n in range(72)} <= set(times)


def test_a_connection_that_ended_leaves_its_rows_and_nothing_else(table: FedTable) -> None:
    table.story.when_committed(Define(OTHER, 1))
    for split in ("0", "other"):
        table.before = None
        table.commit(TakeItems(FEED, (item(table.next),)), rows(table, 1), split=split)
    other = next_position(f"{OTHER}/0", None, 1)
    table.story.head.commit(table.story.transaction(positions=[other]))
    table.story.when_committed(ForgetConnection(FEED))
    assert connections(table.story.state) == [Connection(OTHER, 2, 1, TransactionNumber(3))]
    assert list(positions_of(table.story.state, FEED)) == []
    assert [split for split, *_ in positions_of(table.story.state, OTHER)] == ["0"]
    assert len(list(table.story.state.all_references())) == 2
    (found,) = table.story.state.connection.execute("SELECT count(*) FROM items").fetchone()
    assert found == 0


def test_a_dropped_table_has_no_connections(table: FedTable) -> None:
    table.commit(TakeItems(FEED, (item(1),)), Count(FEED, 1, "0", Tally()))
    table.story.when_committed(DropTable())
    state = table.story.state
    assert connections(state) == []
    assert list(positions_of(state, FEED)) == []


def test_all_readers_of_the_log_arrive_at_the_same_and_snapshots_too(
    table: FedTable, tmp_path: Path
) -> None:
    story = table.story
    empty = TableStory().state.digest()
    table.commit(TakeItems(FEED, (item(1),)), Count(FEED, 1, "0", Tally(read=1, filtered=1)))
    table.commit(RecordGap(FEED, 1, "0", b"1", b"5", "gone"))
    reader = story.another_head()
    reader.follow()
    assert reader.state.digest() == story.state.digest() != empty
    snapshots = Snapshots(TableId("t"), story.objects, scratch=tmp_path)
    snapshots.write(story.state)
    ((_, path),) = snapshots.newest_first()
    assert snapshots.prove(path)


@pytest.mark.parametrize("table_of_state", ["connections", "tallies", "items", "gaps"])
def test_each_of_them_is_digested(table: FedTable, table_of_state: str) -> None:
    table.commit(TakeItems(FEED, (item(1),)), Count(FEED, 1, "0", Tally(read=1, filtered=1)))
    table.commit(RecordGap(FEED, 1, "0", b"1", b"5", "gone"))
    before = table.story.state.digest()
    table.story.state.connection.execute(f"DELETE FROM {table_of_state}")
    assert table.story.state.digest() != before
