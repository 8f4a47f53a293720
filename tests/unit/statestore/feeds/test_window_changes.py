"""Windows that the watermark has passed are sealed by the entry that moved it (R19)."""

from pathlib import Path

import msgspec
import pytest

from lakebed.errors import InvalidError, TableBusyError
from lakebed.feed_errors import WindowSealedError
from lakebed.model.feeds import windows as windows_module
from lakebed.model.feeds.tallies import Tally
from lakebed.model.feeds.windows import SplitTime, WindowCount
from lakebed.model.names import TableId
from lakebed.statestore.log_entries.feed_changes import (
    Count,
    ForgetConnection,
)
from lakebed.statestore.log_entries.file_changes import AddFiles
from lakebed.statestore.log_entries.table_changes import DropTable
from lakebed.statestore.log_entries.transactions import Change
from lakebed.statestore.log_entries.window_changes import Advance
from lakebed.statestore.snapshots import Snapshots
from lakebed.statestore.table_state import window_records
from lakebed.statestore.table_state.feed_records import (
    errors_in_row,
    errors_in_rows,
)
from lakebed.statestore.table_state.window_records import (
    SplitProgress,
    open_windows,
    split_progress,
)
from tests.dsl.windowed_table import DROP, FEED, RULES, WindowedTable


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
