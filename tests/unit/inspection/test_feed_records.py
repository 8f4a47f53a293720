"""What a table says of the feeds that fill it: in its status, and when it contradicts itself."""

import random
from pathlib import Path

import pytest

from lakebed.backends.memory import MemoryJobTracker
from lakebed.inspection.check_state import check_state
from lakebed.inspection.drawing import draw_status
from lakebed.inspection.past_state import draw_state, show_state, state_at
from lakebed.inspection.status import ConnectionStatus, table_status
from lakebed.model.feeds.tallies import Tally
from lakebed.model.feeds.windows import SplitTime, WindowCount, WindowRules, window_start
from lakebed.model.names import ConnectionId, Micros, TableId, TableName, TransactionNumber
from lakebed.statestore.log_entries.feed_changes import (
    Count,
    Define,
    ForgetConnection,
    RecordGap,
    TakeItems,
)
from lakebed.statestore.log_entries.file_changes import AddFiles
from lakebed.statestore.log_entries.window_changes import Advance
from lakebed.statestore.open_table import OpenTable
from lakebed.statestore.snapshots import Snapshots
from lakebed.statestore.table_state.feed_records import HOUR
from tests.dsl import TableStory
from tests.dsl.table_story import next_position

FEED, OTHER = ConnectionId("feed"), ConnectionId("other")


@pytest.fixture
def story() -> TableStory:
    """Return a table that was fed from two source splits, an hour apart."""
    story = TableStory()
    story.when_committed(Define(OTHER, 1), Define(FEED, 2), TakeItems(OTHER, (bytes(16),)))
    for split in ("0", "1"):
        added = AddFiles(story.new_files("all", **{f"f{split}": 3}))
        tally = Tally(read=5, stored=3, quarantined=1, filtered=1, bytes=100)
        gap = RecordGap(FEED, 2, split, b"1", b"5", "gone")
        said = SplitTime(split, Micros(story.clock.now()), caught_up=True)
        windows = (WindowCount(window_start(Micros(story.clock.now() - HOUR), 60), 3),)
        advance = Advance(FEED, 2, WindowRules(60), (said,), windows)
        changes = (added, Count(FEED, 2, split, tally, 1), gap, advance)
        position = next_position(f"{FEED}/{split}", None, 10)
        story.head.commit(story.transaction(*changes, positions=[position]))
        story.clock.advance(3_600)
    return story


def test_a_status_says_what_became_of_the_records_of_each_connection(story: TableStory) -> None:
    table = OpenTable(id_=TableId("t"), name=TableName("t"), head=story.head, rng=random.Random(0))
    status = table_status(table, tracker=MemoryJobTracker())
    fed = ConnectionStatus(
        id="feed",
        version=2,
        source_splits=2,
        gaps=2,
        read=10,
        stored=6,
        quarantined=2,
        errors_in_row=1,
        watermark=1_767_225_600_000_000,
        windows_open=1,
    )
    idle = ConnectionStatus(
        id="other", version=1, source_splits=0, read=0, stored=0, quarantined=0, gaps=0
    )
    assert status.connections == (fed, idle)
    drawn = draw_status(status)
    assert "2 gaps, 1 error in a row, watermark 2026-01-01 00:00:00, 1 open window" in drawn


def test_a_state_of_the_past_says_how_far_feeds_were_then(
    story: TableStory, tmp_path: Path
) -> None:
    snapshots = Snapshots(TableId("t"), story.objects, scratch=tmp_path)
    snapshots.write(story.state)
    newest = story.state.head().number
    story.when_committed(ForgetConnection(FEED))
    reads = {}
    for number in (2, newest - 1, newest, newest + 1):
        state = state_at(story.log, snapshots, TransactionNumber(number))
        shown = show_state(state, TableName("t"))
        reads[number] = [one.read for one in shown.connections if one.id == FEED]
        if number == newest:
            assert "watermark 2026-01-01 00:00:00" in draw_state(shown, "then")
    assert reads == {2: [0], newest - 1: [5], newest: [10], newest + 1: []}


@pytest.mark.parametrize(
    ("damage", "code"),
    [
        ("UPDATE positions SET value = x'00'", "position-damaged"),
        ("UPDATE tallies SET stored = stored + 1", "ledger-wrong"),
        ("DELETE FROM connections", "ledger-wrong windows-wrong"),
        ("UPDATE items SET connection = 7", "ledger-wrong"),
        ("UPDATE gaps SET connection = 7", "ledger-wrong"),
        ("UPDATE tallies SET connection = 7", "ledger-wrong"),
        ("UPDATE items SET number = 99", "number-impossible"),
        ("UPDATE gaps SET number = number + 99", "number-impossible"),
        ("UPDATE connections SET number = 99", "number-impossible"),
        ("UPDATE errors_in_row SET errors = 0", "ledger-wrong"),
        ("UPDATE errors_in_row SET connection = 7", "ledger-wrong"),
        ("UPDATE watermarks SET sealed = time + 1", "windows-wrong"),
        ("UPDATE watermarks SET connection = 7", "windows-wrong"),
        ("UPDATE progress SET connection = 7", "windows-wrong"),
        ("UPDATE progress SET since = NULL", "windows-wrong"),
        ("UPDATE windows SET connection = 7", "windows-wrong"),
        ("UPDATE windows SET sealed = NULL", "windows-wrong"),
        ("UPDATE windows SET rows = -1", "windows-wrong"),
        ("UPDATE windows SET number = 99", "number-impossible"),
    ],
)
def test_what_contradicts_itself_is_found(story: TableStory, damage: str, code: str) -> None:
    name = TableName("t")
    assert list(check_state(story.state, name)) == []
    assert story.state.connection.execute(damage).rowcount
    assert {finding.code for finding in check_state(story.state, name)} == set(code.split())
