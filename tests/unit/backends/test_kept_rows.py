"""Rows of batches, of usage, and marks of messages prove themselves; files of the format before are
opened still."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from lakebed.backends.local import SqliteFileBatches, SqliteJobQueues
from lakebed.backends.local.usage_ledger import SqliteUsageLedger
from lakebed.backends.memory import VirtualClock
from lakebed.errors import CorruptError
from lakebed.model.names import MICROS_PER_SECOND, Micros, TableId
from lakebed.ports.file_batches import Batch, BatchHead, SubmitCounts, SubmittedFile
from lakebed.ports.job_queue import ONCE_SECONDS, Message
from lakebed.ports.paying.usage_ledger import LedgerEntry

TABLE = TableId("t1")
START = Micros(1_800_000_000 * MICROS_PER_SECOND)
FILES = tuple(SubmittedFile(f"f{n}", 7, "v", START) for n in range(3))
BATCH = Batch(number=1, files=FILES[:1], target="ingest", planned=START)
OLDER = (
    "ALTER TABLE taken DROP COLUMN checksum",
    "ALTER TABLE head DROP COLUMN checksum",
    "PRAGMA user_version = 1",
)


def filled(folder: Path) -> SqliteFileBatches:
    """Return batches that hold two files that wait, and a batch of one that was taken."""
    batches = SqliteFileBatches(folder)
    batches.submit(TABLE, FILES)
    batches.plan(TABLE, BATCH, batches.head(TABLE))
    batches.take(TABLE, BATCH, until=Micros(2 * START))
    batches.remove(TABLE, BATCH)
    batches.close()
    return batches


def edited(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


def are_whole(batches: SqliteFileBatches) -> bool:
    assert batches.head(TABLE) == BatchHead(1, 0, 0)
    assert batches.pending(TABLE, files_max=9) == list(FILES[1:])
    assert batches.batches(TABLE) == [BATCH]
    return batches.submit(TABLE, FILES) == SubmitCounts(0, 3)


ASKED: dict[str, Callable[[SqliteFileBatches], object]] = {
    "head": lambda batches: batches.head(TABLE),
    "pending": lambda batches: batches.pending(TABLE, files_max=9),
    "batches": lambda batches: batches.batches(TABLE),
    "tables": lambda batches: batches.tables(),
    "submit": lambda batches: batches.submit(TABLE, FILES),
}


@pytest.mark.parametrize("ask", ASKED.values(), ids=list(ASKED))
@pytest.mark.parametrize(
    "change",
    [
        "head SET planned = 2",
        "head SET ended = 1",
        "head SET lake_table = 't3'",
        "taken SET until = 5",
        "taken SET is_free = 1",
        "taken SET digest = x'00'",
        "pending SET lake_table = 't3'",
        "batch SET number = 7",
    ],
)
def test_a_row_that_was_changed_is_damage_whatever_is_asked(
    tmp_path: Path, change: str, ask: Callable[[SqliteFileBatches], object]
) -> None:
    batches = filled(tmp_path)
    edited(tmp_path / "batches.sqlite", f"UPDATE {change}")
    for _ in range(2):
        with pytest.raises(CorruptError, match="contradicts its checksum"):
            ask(batches)


@pytest.mark.parametrize("change", ["head SET planned = 2", "taken SET is_free = 1"])
def test_rows_of_a_large_file_prove_themselves_when_they_are_asked_for(
    tmp_path: Path, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lakebed.backends.local.kept_database.PROVEN_BYTES_MAX", 0)
    batches = filled(tmp_path)
    assert are_whole(batches)
    batches.close()
    edited(tmp_path / "batches.sqlite", f"UPDATE {change}")
    with pytest.raises(CorruptError, match="contradicts its checksum"):
        are_whole(batches)


def test_batches_of_the_format_before_are_opened_and_proven_from_now_on(tmp_path: Path) -> None:
    batches = filled(tmp_path)
    edited(tmp_path / "batches.sqlite", *OLDER)
    (tmp_path / "batches.made").unlink()
    assert are_whole(batches)
    batches.close()
    edited(tmp_path / "batches.sqlite", "UPDATE head SET planned = 2")
    with pytest.raises(CorruptError, match="contradicts its checksum"):
        batches.head(TABLE)


def test_a_file_of_batches_that_is_gone_is_no_empty_one(tmp_path: Path) -> None:
    batches = SqliteFileBatches(tmp_path)
    assert batches.pending(TABLE, files_max=9) == []
    filled(tmp_path)
    (tmp_path / "batches.sqlite").unlink()
    for ask in ASKED.values():
        with pytest.raises(CorruptError, match=r"gone.*delete batches\.made"):
            ask(batches)
    (tmp_path / "batches.made").unlink()
    assert batches.submit(TABLE, FILES) == SubmitCounts(3, 0)


def test_batches_need_no_write_ahead_file(tmp_path: Path) -> None:
    batches = SqliteFileBatches(tmp_path)
    batches.submit(TABLE, FILES)
    (tmp_path / "moved").mkdir()
    (tmp_path / "moved" / "batches.sqlite").write_bytes((tmp_path / "batches.sqlite").read_bytes())
    moved = SqliteFileBatches(tmp_path / "moved")
    assert moved.pending(TABLE, files_max=9) == list(FILES)


@pytest.mark.parametrize(
    ("change", "seconds"),
    [
        ("at = at + 60000000", ONCE_SECONDS),
        ("at = at + 999999999999", ONCE_SECONDS),
        ("text = 'b'", 0),
        ("queue = 'r'", 0),
    ],
)
def test_a_mark_of_a_message_that_was_changed_hides_no_message(
    tmp_path: Path, change: str, seconds: int
) -> None:
    clock = VirtualClock()
    queues = SqliteJobQueues(tmp_path, clock)
    queues.open("q").send([Message(b"first", once="a")])
    queues.close()
    edited(tmp_path / "queues.sqlite", f"UPDATE once SET {change}")
    clock.advance(seconds)
    for name, wanted in (("q", [b"first", b"a", b"b"]), ("r", [b"a", b"b"])):
        queue = queues.open(name)
        for text in ("a", "b") * 2:
            queue.send([Message(text.encode(), once=text)])
        assert [one.body for one in queue.receive(messages_max=9, hidden_seconds=9)] == wanted


def test_queues_of_the_format_before_know_what_was_sent_once(tmp_path: Path) -> None:
    queues = SqliteJobQueues(tmp_path, VirtualClock())
    queues.open("q").send([Message(b"1", once="a")])
    queues.close()
    older = "ALTER TABLE once DROP COLUMN checksum", "PRAGMA user_version = 3"
    edited(tmp_path / "queues.sqlite", *older)
    queues.open("q").send([Message(b"2", once="a"), Message(b"3", once="b")])
    assert queues.open("q").depth() == (2, 0)
    queues.close()
    edited(tmp_path / "queues.sqlite", "UPDATE once SET at = at + 1 WHERE text = 'a'")
    queues.open("q").send([Message(b"4", once="a"), Message(b"5", once="b")])
    assert queues.open("q").depth() == (3, 0)


def test_marks_whose_text_is_none_are_damage_while_a_file_is_upgraded(tmp_path: Path) -> None:
    queues = SqliteJobQueues(tmp_path, VirtualClock())
    queues.open("q").send([Message(b"1", once="a")])
    queues.close()
    edited(
        tmp_path / "queues.sqlite",
        "ALTER TABLE once DROP COLUMN checksum",
        "UPDATE once SET text = CAST(x'ff' AS TEXT)",
        "PRAGMA user_version = 3",
    )
    with pytest.raises(CorruptError, match="text that is none"):
        queues.open("q").depth()


def usage(hour: int, amount: float) -> LedgerEntry:
    return LedgerEntry(table=TABLE, hour=hour, kind="ingest", counts={"rows_in": amount})


def test_usage_that_was_changed_is_left_out_and_not_added_to(tmp_path: Path) -> None:
    ledger = SqliteUsageLedger(tmp_path)
    for hour in (1, 2):
        ledger.add(usage(hour, 3))
    ledger.close()
    edited(tmp_path / "usage.sqlite", "UPDATE usage SET amount = 9 WHERE hour = 2")
    assert ledger.read(TABLE, since=0, until=9) == [usage(1, 3)]
    for hour in (1, 2):
        ledger.add(usage(hour, 0.5))
    assert ledger.read(TABLE, since=0, until=9) == [usage(1, 3.5), usage(2, 0.5)]


def test_usage_of_the_format_before_is_kept(tmp_path: Path) -> None:
    ledger = SqliteUsageLedger(tmp_path)
    ledger.add(usage(1, 3))
    ledger.close()
    older = "ALTER TABLE usage DROP COLUMN checksum", "PRAGMA user_version = 1"
    edited(tmp_path / "usage.sqlite", *older)
    ledger.add(usage(1, 2))
    assert ledger.read(TABLE, since=0, until=9) == [usage(1, 5)]
