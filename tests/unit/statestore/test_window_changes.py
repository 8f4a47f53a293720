"""Event time in the log: the watermark only rises (R18), and windows that it has passed are sealed
by the entry that moved it (R19)."""

from pathlib import Path

import msgspec
import pytest

from lakebed.errors import InvalidError, LakebedError, TableBusyError
from lakebed.feed_errors import DefinitionMovedError, WindowSealedError
from lakebed.model.feeds import windows as windows_module
from lakebed.model.feeds.tallies import Tally
from lakebed.model.feeds.windows import SplitTime, WindowCount, WindowRules
from lakebed.model.names import ConnectionId, Micros, TableId
from lakebed.statestore.log_entries.feed_changes import (
    Count,
    Define,
    ForgetConnection,
    TakeItems,
)
from lakebed.statestore.log_entries.file_changes import AddFiles
from lakebed.statestore.log_entries.table_changes import DropTable
from lakebed.statestore.log_entries.transactions import Change, PositionChange
from lakebed.statestore.log_entries.window_changes import Advance
from lakebed.statestore.snapshots import Snapshots
from lakebed.statestore.table_state import window_records
from lakebed.statestore.table_state.feed_records import (
    Connection,
    connection_of,
    errors_in_row,
    errors_in_rows,
)
from lakebed.statestore.table_state.window_records import (
    SplitProgress,
    Watermark,
    Window,
    open_windows,
    split_progress,
    watermark_of,
    windows_of,
)
from tests.dsl import TableStory
from tests.dsl.table_story import next_position

FEED = ConnectionId("feed")
SECOND = 1_000_000
RULES = WindowRules(10, idle_seconds=60, ahead_seconds_max=3_600)
DROP = msgspec.structs.replace(RULES, late="drop")


class WindowedTable:
    """A table that a feed fills, whose windows are ten seconds long. Times are seconds after its
    beginning."""

    def __init__(self, *splits: str, rules: WindowRules = RULES) -> None:
        self.story = TableStory()
        self.begin = Micros(self.story.clock.now() // (10 * SECOND) * 10 * SECOND)
        self.rules = rules
        self.positions: dict[str, bytes] = {}
        self.taken = 0
        self.story.when_committed(Define(FEED, 1, splits))

    def at(self, seconds: float) -> Micros:
        return Micros(self.begin + int(seconds * SECOND))

    def moved(self, *splits: str) -> list[PositionChange]:
        self.taken += 1
        before = self.positions
        return [next_position(f"{FEED}/{s}", before.get(s), self.taken) for s in splits]

    def commit(self, *changes: Change, positions: list[PositionChange]) -> int:
        made = self.story.transaction(*changes, positions=positions)
        number = self.story.head.commit(made)
        self.positions |= {p.name.removeprefix(f"{FEED}/"): p.value for p in positions}
        return number

    def take(self, split: str, *times: float, caught_up: bool = False, late: int = 0) -> int:
        """Commit rows with these event times. late: how many more were left out as late, all of
        the window that begins at 0."""
        starts = [self.at(time // 10 * 10) for time in times]
        counts = {start: WindowCount(start, starts.count(start)) for start in sorted(set(starts))}
        if late:
            known = counts.get(self.at(0), WindowCount(self.at(0)))
            counts[self.at(0)] = WindowCount(self.at(0), known.rows, late)
        windows = tuple(counts[start] for start in sorted(counts))
        newest = self.at(max(times)) if times else None
        said = SplitTime(split, newest, caught_up)
        changes: list[Change] = [Advance(FEED, 1, self.rules, (said,), windows)]
        if times or late:
            tally = Tally(read=len(times) + late, stored=len(times), discarded=late)
            changes.append(Count(FEED, 1, split, tally))
        if times:
            files = self.story.new_files("all", keys=None, **{f"f{self.taken}": len(times)})
            changes.append(AddFiles(files))
        return self.commit(*changes, positions=self.moved(split))

    def say(self, *splits: SplitTime) -> int:
        moved = self.moved(*(split.source_split for split in splits if not split.ended))
        return self.commit(Advance(FEED, 1, self.rules, splits), positions=moved)

    def refused(self, kind: type[LakebedError], change: Advance, *more: Change) -> str:
        """Try what is refused, and see that nothing was written."""
        before, state = self.story.log.appended, self.story.state.digest()
        splits = [split.source_split for split in change.splits if not split.ended]
        with pytest.raises(kind) as caught:
            self.commit(change, *more, positions=self.moved(*dict.fromkeys(splits)))
        assert type(caught.value) is kind
        assert self.story.log.appended == before
        assert self.story.state.digest() == state
        return str(caught.value)

    @property
    def connection(self) -> Connection:
        known = connection_of(self.story.state, FEED)
        assert known is not None
        return known

    @property
    def watermark(self) -> Watermark:
        return watermark_of(self.story.state, self.connection)

    def seconds(self) -> float | None:
        """The watermark, in seconds after the beginning."""
        time = self.watermark.time
        return None if time is None else (time - self.begin) / SECOND

    def windows(self) -> list[tuple[float | None, int, int, int | None, int, int | None]]:
        return [
            (None if w.start is None else (w.start - self.begin) / SECOND, *tail(w))
            for w in windows_of(self.story.state, self.connection)
        ]


def tail(window: Window) -> tuple[int, int, int | None, int, int | None]:
    return window.rows, window.late, window.sealed, window.revision, window.number


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


def test_windows_are_sealed_by_the_entry_that_moved_the_watermark_beyond_them() -> None:
    table = WindowedTable(rules=msgspec.structs.replace(RULES, seal_seconds=5))
    table.take("0", 3, 9, 11)
    table.take("0", 14.999999)
    assert [row[3] for row in table.windows()] == [None, None]
    sealing = table.take("0", 15, 16)
    assert table.windows() == [(0, 2, 0, sealing, 1, sealing), (10, 4, 0, None, 0, None)]
    assert open_windows(table.story.state, table.connection) == 1
    later = table.take("0", 31)
    assert table.windows()[1] == (10, 4, 0, later, 1, later)


def test_late_rows_that_are_accepted_make_the_next_revision() -> None:
    table = WindowedTable()
    table.take("0", 3, 12)
    (sealed,) = {row[3] for row in table.windows()[:1]}
    late = table.take("0", 4, 5, 13)
    assert table.windows() == [(0, 3 + 0, 2, sealed, 2, late), (10, 2, 0, None, 0, None)]
    again = table.take("0", 6)
    assert table.windows()[0] == (0, 4, 3, sealed, 3, again)


@pytest.mark.parametrize("late", ["divert", "drop"])
def test_rows_of_a_sealed_window_are_refused_where_late_ones_are_not_accepted(late: str) -> None:
    table = WindowedTable(rules=msgspec.structs.replace(RULES, late=late))
    table.take("0", 3)
    table.take("0", 25)
    (before,) = [row for row in table.windows() if row[0] == 0]
    rows = Advance(FEED, 1, table.rules, (SplitTime("0"),), (WindowCount(table.at(0), 1),))
    added = AddFiles(table.story.new_files("all", late=1))
    table.refused(WindowSealedError, rows, added, Count(FEED, 1, "0", Tally(read=1, stored=1)))
    table.take("0", 27, late=2)
    (after,) = [row for row in table.windows() if row[0] == 0]
    assert after == (0, 1, 2, *before[3:]), "counted, and no new revision"


def test_a_window_without_rows_is_sealed_like_any_other() -> None:
    table = WindowedTable(rules=DROP)
    table.take("0", 95)
    rows = Advance(FEED, 1, DROP, (SplitTime("0"),), (WindowCount(table.at(20), 1),))
    added = AddFiles(table.story.new_files("all", late=1))
    table.refused(WindowSealedError, rows, added, Count(FEED, 1, "0", Tally(read=1, stored=1)))
    table.rules = RULES
    late = table.take("0", 25)
    assert table.windows()[0] == (20, 1, 1, late, 1, late)


def test_a_window_stays_sealed_when_the_rules_change() -> None:
    table = WindowedTable(rules=DROP)
    table.take("0", 3, 12)
    assert table.windows()[0][4] == 1
    slow = msgspec.structs.replace(DROP, seal_seconds=1_000, window_seconds=5)
    rows = Advance(FEED, 1, slow, (SplitTime("0"),), (WindowCount(table.at(5), 1),))
    added = AddFiles(table.story.new_files("all", late=1))
    table.refused(WindowSealedError, rows, added, Count(FEED, 1, "0", Tally(read=1, stored=1)))


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


def test_each_row_that_is_stored_lies_in_a_window() -> None:
    table = WindowedTable()
    window = (WindowCount(table.at(0), 1),)
    changes = (
        AddFiles(table.story.new_files("all", a=2)),
        Count(FEED, 1, "0", Tally(read=2, stored=2)),
    )
    table.refused(InvalidError, Advance(FEED, 1, RULES, (SplitTime("0"),), window), *changes)
    table.refused(InvalidError, Advance(FEED, 1, RULES, (SplitTime("0"),)), *changes)


def test_a_row_that_the_filter_of_the_table_leaves_out_may_be_counted_in_its_window() -> None:
    table = WindowedTable()
    changes = (
        AddFiles(table.story.new_files("all", a=2)),
        Count(FEED, 1, "0", Tally(read=5, stored=2, filtered=3)),
    )
    many = Advance(FEED, 1, RULES, (SplitTime("0"),), (WindowCount(table.at(0), 6),))
    table.refused(InvalidError, many, *changes)
    all_ = Advance(FEED, 1, RULES, (SplitTime("0"),), (WindowCount(table.at(0), 5),))
    table.commit(all_, *changes, positions=table.moved("0"))


def test_late_rows_are_those_that_were_left_out_of_a_sealed_window() -> None:
    table = WindowedTable(rules=DROP)
    table.take("0", 3)
    late = (WindowCount(table.at(0), 0, 2),)
    said = Advance(FEED, 1, DROP, (SplitTime("0"),), late)
    two = Count(FEED, 1, "0", Tally(read=2, discarded=2))
    assert "open window" in table.refused(InvalidError, said, two)
    table.take("0", 12)
    fewer = Count(FEED, 1, "0", Tally(read=2, discarded=1, filtered=1))
    assert "not those of the rows" in table.refused(InvalidError, said, fewer)
    table.commit(said, two, positions=table.moved("0"))


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


def test_windows_of_one_commit_and_open_ones_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (windows_module.WINDOWS_MAX, window_records.OPEN_MAX) == (10_000, 1_000_000)
    table = WindowedTable("0", "other")
    table.take("0", *range(0, 50, 10))
    monkeypatch.setattr(windows_module, "WINDOWS_MAX", 2)
    three = tuple(WindowCount(table.at(10 * n), 1) for n in range(3))
    changes = (
        AddFiles(table.story.new_files("all", a=3)),
        Count(FEED, 1, "0", Tally(read=3, stored=3)),
    )
    said = Advance(FEED, 1, RULES, (SplitTime("0"),), three)
    table.refused(InvalidError, said, *changes)
    monkeypatch.undo()
    monkeypatch.setattr(window_records, "OPEN_MAX", 5)
    table.take("0", 4, 14, 24)
    with pytest.raises(TableBusyError):
        table.take("0", 60)
    table.take("other", 40)
    assert open_windows(table.story.state, table.connection) == 1
    table.take("0", 60)


def test_old_sealed_windows_become_one_row(monkeypatch: pytest.MonkeyPatch) -> None:
    table = WindowedTable()
    days = 86_400
    table.story.clock.advance(402 * days)
    table.take("0", 5, 15)
    table.take("0", 401 * days)
    assert table.windows()[0] == (None, 2, 0, 4, 0, 4)
    assert [row[0] for row in table.windows()] == [None, 401 * days]
    table.take("0", 25)
    assert table.windows()[0] == (None, 3, 1, 5, 0, 5)
    monkeypatch.setattr(window_records, "SEALED_MAX", 4)
    monkeypatch.setattr(window_records, "FOLDED_TO", 2)
    table.take("0", *(401 * days + 10 * n for n in range(1, 7)))
    starts = [row[0] for row in table.windows()]
    assert starts[0] is None
    assert [start - 401 * days for start in starts[1:] if start is not None] == [40, 50, 60]
    assert sum(row[1] for row in table.windows()) == 10


def test_errors_in_a_row_are_counted_on_whoever_owns_the_source_split() -> None:
    table = WindowedTable()
    bad = Tally(read=3, quarantined=3)
    table.commit(Count(FEED, 1, "0", bad, 3), positions=table.moved("0"))
    assert errors_in_row(table.story.state, table.connection, "0") == 3
    table.commit(Count(FEED, 1, "0", bad, 6), positions=table.moved("0"))
    assert errors_in_rows(table.story.state, table.connection) == {"0": 6}
    table.commit(Count(FEED, 1, "0", Tally(read=1, filtered=1)), positions=table.moved("0"))
    assert errors_in_rows(table.story.state, table.connection) == {}
    with pytest.raises(InvalidError):
        table.commit(Count(FEED, 1, "0", Tally(), -1), positions=table.moved("0"))


def filled() -> WindowedTable:
    table = WindowedTable("0", "1")
    table.take("0", 3, 12)
    table.take("1", 11)
    table.commit(Count(FEED, 1, "0", Tally(read=1, quarantined=1), 1), positions=table.moved("0"))
    return table


@pytest.mark.parametrize("ends", [ForgetConnection(FEED), DropTable()], ids=str)
def test_a_connection_that_ended_leaves_no_event_time(ends: Change) -> None:
    table = filled()
    table.story.when_committed(ends)
    for name in ("errors_in_row", "watermarks", "progress", "windows"):
        query = f"SELECT count(*) FROM {name}"
        assert table.story.state.connection.execute(query).fetchone() == (0,)


def test_all_readers_arrive_at_the_same_and_snapshots_too(tmp_path: Path) -> None:
    table = filled()
    reader = table.story.another_head()
    reader.follow()
    assert reader.state.digest() == table.story.state.digest()
    progress = split_progress(table.story.state, table.connection)
    assert [type(one) for one in progress] == [SplitProgress] * 2
    snapshots = Snapshots(TableId("t"), table.story.objects, scratch=tmp_path)
    snapshots.write(table.story.state)
    ((_, path),) = snapshots.newest_first()
    assert snapshots.prove(path)


@pytest.mark.parametrize("name", ["errors_in_row", "watermarks", "progress", "windows"])
def test_each_of_them_is_digested(name: str) -> None:
    table = filled()
    before = table.story.state.digest()
    table.story.state.connection.execute(f"DELETE FROM {name}")
    assert table.story.state.digest() != before
