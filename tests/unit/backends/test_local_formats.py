"""The number of a file's format: older files are upgraded, newer ones refused, and a number that
the file contradicts is damage."""

import gc
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from lakebed.backends.local import (
    SqliteJobQueues,
    SqliteJobTracker,
    SqliteTableRegistry,
    SqliteTransactionLogs,
)
from lakebed.backends.memory import VirtualClock
from lakebed.errors import CorruptError, LogConflictError, NewerFormatError
from lakebed.model.names import JobId, Micros, TableId, TableName, TransactionNumber
from lakebed.ports.job_queue import Message
from lakebed.ports.job_tracker import JobReport
from tests.dsl.format_numbers import change_number, make_newer, number_in

TABLE = TableId("t1")
CLOCK = VirtualClock()
ONE = TransactionNumber(1)
ZERO = TransactionNumber(0)
OPENERS: list[Callable[[Path], object]] = [
    lambda root: list(SqliteTransactionLogs(root, CLOCK).open(TABLE).read_after(ZERO)),
    lambda root: SqliteTransactionLogs(root, CLOCK).open(TABLE).append(ONE, b""),
    lambda root: SqliteJobQueues(root, CLOCK).open("q").depth(),
    lambda root: SqliteTableRegistry(root).find(TableName("a")),
    lambda root: SqliteJobTracker(root).last(TABLE, JobId("a")),
]
FILES = ["t1", "t1", "queues", "tables", "jobs"]
FILE_OPENERS = list(zip(OPENERS, FILES, strict=True))


@pytest.mark.parametrize(("opener", "name"), FILE_OPENERS)
def test_a_file_that_is_no_database_is_corrupt(
    tmp_path: Path, opener: Callable[[Path], object], name: str
) -> None:
    (tmp_path / f"{name}.sqlite").write_bytes(b"this is no database, whatever it says" * 100)
    with pytest.raises(CorruptError):
        opener(tmp_path)


def made(root: Path, opener: Callable[[Path], object], name: str) -> Path:
    """Return the file that an opener opens, and let no process have it open."""
    SqliteTableRegistry(root).claim(TableName("a"), TABLE)
    for opens in (OPENERS[1], opener):
        with suppress(LogConflictError):
            opens(root)
    gc.collect()
    return root / f"{name}.sqlite"


@pytest.mark.parametrize(("opener", "name"), FILE_OPENERS)
def test_a_file_of_a_newer_format_is_refused(
    tmp_path: Path, opener: Callable[[Path], object], name: str
) -> None:
    file = made(tmp_path, opener, name)
    make_newer(file)
    with pytest.raises(NewerFormatError):
        opener(tmp_path)


@pytest.mark.parametrize(("opener", "name"), FILE_OPENERS)
def test_a_file_whose_number_its_columns_contradict_is_corrupt(
    tmp_path: Path, opener: Callable[[Path], object], name: str
) -> None:
    file = made(tmp_path, opener, name)
    true = number_in(file)
    for number in {-5, 0, 1, 2, 5, 99, 1 << 30} - {true}:
        change_number(file, number)
        with pytest.raises(CorruptError, match=f"it says format {number}"):
            opener(tmp_path)
        assert number_in(file) == number, "it was left as it is"
    change_number(file, true)
    with suppress(LogConflictError):
        opener(tmp_path)


def test_a_file_of_an_older_format_is_brought_to_this_one(tmp_path: Path) -> None:
    older = sqlite3.connect(tmp_path / "tables.sqlite")
    older.executescript(
        """
        CREATE TABLE name (name TEXT PRIMARY KEY, table_id TEXT NOT NULL) STRICT, WITHOUT ROWID;
        CREATE INDEX name_by_table ON name (table_id);
        CREATE TABLE mark (table_id TEXT PRIMARY KEY, number INTEGER NOT NULL) STRICT;
        INSERT INTO name VALUES ('a', 't1');
        PRAGMA user_version = 1
        """
    )
    older.close()
    first, second = SqliteTableRegistry(tmp_path), SqliteTableRegistry(tmp_path)
    first.set_online(TableName("a"), TABLE, online=False)
    assert [(e.name, e.id, e.online) for e in second.list()] == [("a", TABLE, False)]


def test_queues_of_an_older_format_keep_their_messages(tmp_path: Path) -> None:
    older = sqlite3.connect(tmp_path / "queues.sqlite")
    older.executescript(
        """
        CREATE TABLE message (
            number INTEGER PRIMARY KEY AUTOINCREMENT, queue TEXT NOT NULL,
            dead INTEGER NOT NULL DEFAULT 0, visible_at INTEGER NOT NULL,
            receives INTEGER NOT NULL DEFAULT 0, body BLOB NOT NULL) STRICT;
        CREATE INDEX message_by_queue ON message (queue, dead, number);
        INSERT INTO message (queue, visible_at, body) VALUES ('q', 0, x'61');
        PRAGMA user_version = 1
        """
    )
    older.close()
    queue = SqliteJobQueues(tmp_path, CLOCK).open("q")
    queue.send([Message(b"b", "a group", "once")])
    received = queue.receive(messages_max=9, hidden_seconds=9)
    assert [(m.body, m.message_group) for m in received] == [(b"a", ""), (b"b", "a group")]


def test_reports_of_the_first_format_are_dropped_and_new_ones_kept(tmp_path: Path) -> None:
    older = sqlite3.connect(tmp_path / "jobs.sqlite")
    older.executescript("CREATE TABLE report (body BLOB) STRICT; PRAGMA user_version = 1")
    older.close()
    tracker, job = SqliteJobTracker(tmp_path), JobId("a")
    assert tracker.last(TABLE, job) is None
    report = JobReport(table=TABLE, job=job, kind="ingest", event="finished", at=Micros(1))
    tracker.report(report)
    assert tracker.last(TABLE, job) == report


def test_a_number_that_an_older_file_contradicts_is_damage(tmp_path: Path) -> None:
    """It is not upgraded: what its number says does not fit the tables."""
    older = sqlite3.connect(tmp_path / "queues.sqlite")
    older.executescript("CREATE TABLE message (body BLOB) STRICT; PRAGMA user_version = 3")
    older.close()
    with pytest.raises(CorruptError, match="it says format 3, and is not"):
        SqliteJobQueues(tmp_path, CLOCK).open("q").depth()
