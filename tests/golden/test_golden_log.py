"""No stored format changes by accident, and what `apply` does for an old log never does (H14)."""

from __future__ import annotations

from typing import get_args

import msgspec
import pytest

from lakebed.model.changes.field_changes import FieldChange
from lakebed.model.feeds.positions import Position, encode_position
from lakebed.model.feeds.tallies import Tally
from lakebed.model.feeds.windows import SplitTime
from lakebed.model.names import ConnectionId, Micros, TransactionNumber
from lakebed.model.processing import processing_json
from lakebed.statestore.log_entries.codec import Entry, decode_entry, encode_entry
from lakebed.statestore.log_entries.feed_changes import (
    BeginAgain,
    Count,
    Define,
    ForgetConnection,
    ForgetItems,
    RecordGap,
    TakeItems,
)
from lakebed.statestore.log_entries.file_changes import AddFiles, RaiseFloor
from lakebed.statestore.log_entries.position_changes import DropPosition, ResetPosition
from lakebed.statestore.log_entries.table_changes import (
    ChangeSchema,
    ChangeSettings,
    Clear,
    DropPin,
    MarkUnsplittable,
    PutPin,
)
from lakebed.statestore.log_entries.transactions import Change, PositionChange, finish_entry
from lakebed.statestore.table_state.state import Moment, TableState
from tests.dsl import TableStory
from tests.dsl.windowed_table import DROP, FEED, WindowedTable
from tests.golden import FOLDER, check_golden, from_hex_lines, hex_lines
from tests.golden.every_change import PROCESSING, every_change

OLD_LOG = "old_log.txt"
OLD_LOG_OF_FIELDS = "old_log_of_fields.txt"
OLD_LOG_OF_CLOCKS = "old_log_of_clocks.txt"
OLD_LOG_OF_FEEDS = "old_log_of_feeds.txt"
PROCESSED_LOG = "processed_log.txt"
OTHER = ConnectionId("other")


def test_the_bytes_of_every_change_are_as_they_were() -> None:
    entry = every_change()
    raw = msgspec.msgpack.encode(entry)  # of the compressed bytes zstd's version may decide
    check_golden("every_change.txt", hex_lines(raw))
    assert decode_entry(encode_entry(entry), 1) == entry


def test_every_kind_of_change_is_among_them() -> None:
    shown = {type(change) for t in every_change().transactions for change in t.changes}
    assert shown == set(get_args(Change))


def old_log() -> list[bytes]:
    """Tell the life of a table and return its log."""
    story = TableStory("L | m | R")
    for number, leaf in enumerate("LRLLR"):
        story.clock.advance(45)
        story.given_files(leaf, **{f"f{number}": 1000 + number})
    wide = (*story.new_files("L", w=30), *story.new_files("R", w=70))
    position = PositionChange("topic/0", None, encode_position(Position(1, 1)), 2)
    story.head.commit(story.transaction(AddFiles(wide), positions=[position], user=True))
    story.when_claimed("one", "L", "f0", "w")
    story.when_split("L", "A | c | B | f | C", shares={"f0": (1, 5, 3)})
    story.given_files("C", keys=("g", "h"), late=5)
    story.when_claimed("two", "R", "f1", "f4")
    story.when_claimed("three", "A", "f2")
    story.when_replaced("two", "R", "f1", "f4", r=2003)
    story.when_replaced("one", "L", "f0", "w", keys=("a", "e"), l=1030)
    story.when_committed(PutPin("p", story.clock.now()), PutPin("q", story.clock.now()))
    story.when_committed(DropPin("p"), ChangeSettings({"job_files_max": 7}))
    story.when_garbage_is_removed("f1")
    story.when_given_up("three")
    story.clock.advance(500)
    floor = RaiseFloor(TransactionNumber(9), TransactionNumber(5))
    story.when_committed(floor, MarkUnsplittable(story.partitions["R"], 7))
    story.when_cleared("X | t | Y")
    story.given_files("Y", y=1)
    story.when_split("X", "X1 | b | X2")
    story.head.commit_group([story.transaction(AddFiles(story.new_files("X2", z=2)))] * 2)
    return [body for _, body in story.log.log.read_after(TransactionNumber(0))]


def old_log_of_fields() -> list[bytes]:
    """Tell the life of a table whose fields are changed and return its log."""
    story = TableStory("L | m | R")
    story.given_files("L", one=10)
    story.when_committed(
        ChangeSchema(
            1,
            (
                FieldChange("rename", 2, "value", "text"),
                FieldChange("add", 3, "count", "int8"),
                FieldChange("add", 4, "tags", '{"struct": [{"name": "a", "type": "bool"}]}'),
            ),
        )
    )
    story.given_files("R", two=20)
    story.clock.advance(60)
    story.when_committed(ChangeSchema(2, (FieldChange("drop", 4, "tags"),)))
    story.when_committed(
        ChangeSchema(
            3, (FieldChange("widen", 3, "count", "int32"), FieldChange("add", 6, "tags", "string"))
        )
    )
    story.when_committed(ChangeSettings({"job_files_max": 7}))
    return [body for _, body in story.log.log.read_after(TransactionNumber(0))]


def old_log_of_clocks() -> list[bytes]:
    """Let log time leap after idle months, and set it back, and return the log."""
    story = TableStory()
    story.given_files("all", a=1, b=2, c=3)
    story.when_claimed("one", "all", "a", "b")
    story.when_replaced("one", "all", "a", "b", d=3)
    story.when_claimed("two", "all", "c", "d")
    story.when_committed(PutPin("p", Micros(story.clock.now() + 1_000_000)))
    for _ in range(2):  # the second machine confirms what the first one says, and says more
        story.clock.advance(100 * 86_400)
        head = story.another_head(clock=story.clock.machine(0))
        head.follow()
        head.commit(story.transaction(AddFiles(())))
    story.head.follow()
    story.when_committed(RaiseFloor(TransactionNumber(4), TransactionNumber(3)))
    behind = story.another_head(clock=story.clock.machine(-50 * 86_400 * 1_000_000))
    behind.follow()
    assert behind.record_time(back=True)
    return [body for _, body in story.log.log.read_after(TransactionNumber(0))]


def old_log_of_feeds() -> list[bytes]:
    """Let a feed fill a table and seal windows, let operators move it, and return the log."""
    table = WindowedTable("0", "1")
    story = table.story
    table.take("0", 3, 12, 25)
    table.take("1", 14, caught_up=True)
    table.take("1", 2, 41)
    story.clock.advance(4_000)
    table.rules = DROP
    for _ in range(3):
        table.say(SplitTime("1", caught_up=True))
        story.clock.advance(30)
    table.take("0", 38, late=3)
    gap = RecordGap(FEED, 1, "q", b"1", b"5", "retention")
    items = TakeItems(FEED, (bytes(range(16)), bytes(16)))
    bad = Count(FEED, 1, "q", Tally(read=2, quarantined=2, bytes=20), 2)
    table.commit(gap, items, bad, positions=table.moved("q"))
    story.when_committed(Define(FEED, 2, ("0", "2")), Define(OTHER, 1))
    at = encode_position(Position(3, 0))
    story.when_committed(ResetPosition(FEED, "0", table.positions["0"], at, "alice", "again"))
    number = story.state.head().number
    forgets = RaiseFloor(number), ForgetItems(number)
    story.when_committed(DropPosition(FEED, "q", table.positions["q"], "bob", "gone"), *forgets)
    story.when_committed(Clear(None), BeginAgain())
    story.when_committed(ForgetConnection(OTHER))
    return [body for _, body in story.log.log.read_after(TransactionNumber(0))]


LOGS = {
    OLD_LOG_OF_FEEDS: old_log_of_feeds,
    OLD_LOG: old_log,
    OLD_LOG_OF_FIELDS: old_log_of_fields,
    OLD_LOG_OF_CLOCKS: old_log_of_clocks,
}


def stored(name: str) -> list[bytes]:
    """Return the entries of a golden log."""
    rows = (FOLDER / name).read_text(encoding="utf-8").splitlines()
    return [from_hex_lines(row.split()[1]) for row in rows]


@pytest.mark.parametrize("name", LOGS)
def test_an_old_log_leads_to_its_old_digests(name: str) -> None:
    bodies = stored(name) if (FOLDER / name).exists() else LOGS[name]()
    head = TableStory().another_head()
    rows = []
    for number, body in enumerate(bodies, 1):
        entry = decode_entry(body, number)
        apply(head.state, number, entry)
        rows.append(f"{head.state.digest().hex()} {body.hex()}\n")
    check_golden(name, "".join(rows))


def kinds_of_changes(bodies: list[bytes]) -> list[list[type[Change]]]:
    entries = (decode_entry(body, number) for number, body in enumerate(bodies, 1))
    return [[type(c) for t in entry.transactions for c in t.changes] for entry in entries]


@pytest.mark.parametrize("name", LOGS)
def test_the_life_behind_an_old_log_makes_the_same_changes_today(name: str) -> None:
    assert kinds_of_changes(LOGS[name]()) == kinds_of_changes(stored(name))


def test_a_log_that_begins_with_processing_leads_to_its_old_digests() -> None:
    state = TableStory("-").another_head().state
    found = []
    for number, body in enumerate(stored(PROCESSED_LOG), 1):
        apply(state, number, decode_entry(body, number))
        found.append(f"{state.digest().hex()} {body.hex()}\n")
    check_golden(PROCESSED_LOG, "".join(found))
    processing = state.processing()
    assert processing is not None
    assert processing_json(processing, state.schema()) == PROCESSING
    assert (state.settings().job_files_max, state.settings().size_ratio) == (5, 2)


def apply(state: TableState, number: int, entry: Entry) -> None:
    moment = Moment(TransactionNumber(number), entry.at)
    for transaction in entry.transactions:
        transaction.apply(state, moment)
    finish_entry(state, moment, None)


def test_an_old_log_ends_in_this_picture() -> None:
    story = TableStory("L | m | R")
    rows = (FOLDER / OLD_LOG).read_text(encoding="utf-8").splitlines()
    state = story.another_head().state
    for number, row in enumerate(rows, 1):
        apply(state, number, decode_entry(bytes.fromhex(row.split()[1]), number))
    leaves = [(f.files, f.rows) for f in sorted(state.leaf_figures(), key=lambda f: f.partition)]
    assert leaves == [(1, 1), (0, 0), (1, 2)]
    assert len(state.garbage()) == 8
    assert state.settings().job_files_max == 7


def test_an_old_log_of_fields_ends_in_this_schema() -> None:
    state = TableStory().another_head().state
    rows = (FOLDER / OLD_LOG_OF_FIELDS).read_text(encoding="utf-8").splitlines()
    for number, row in enumerate(rows, 1):
        apply(state, number, decode_entry(bytes.fromhex(row.split()[1]), number))
    schema = state.schema()
    fields = {f.name: (f.number, str(f.type), f.nullable) for f in schema.fields}
    assert fields == {
        "key": (1, "string", False),
        "text": (2, "string", False),
        "count": (3, "int32", True),
        "tags": (6, "string", True),
    }
    assert (schema.version, schema.next_number) == (4, 7)
    assert schema.hint_for("value") == "it was renamed to 'text'"
