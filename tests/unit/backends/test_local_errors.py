"""What goes wrong on a disk is told as what to do next, and leaves nothing half done
(H28)."""

import errno
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from lakebed.backends.local import (
    LocalObjectStore,
    SqliteTableRegistry,
    SqliteTransactionLogs,
    sqlite_database,
)
from lakebed.backends.memory import VirtualClock
from lakebed.errors import (
    CorruptError,
    DeniedError,
    InvalidError,
    LakebedError,
    StorageFullError,
    UnavailableError,
    UnknownOutcomeError,
)
from lakebed.model.names import TableId, TableName, TransactionNumber
from lakebed.ports.transaction_log import TransactionLog

TABLE = TableId("t1")
CLOCK = VirtualClock()
ZERO, ONE, TWO = TransactionNumber(0), TransactionNumber(1), TransactionNumber(2)


@pytest.fixture
def store(tmp_path: Path) -> LocalObjectStore:
    return LocalObjectStore(tmp_path, CLOCK)


@pytest.fixture
def log(tmp_path: Path) -> TransactionLog:
    log = SqliteTransactionLogs(tmp_path, CLOCK).open(TABLE)
    log.append(ONE, b"x" * 10_000)
    return log


def failing(code: int) -> Callable[..., NoReturn]:
    def fail(*_: object, **__: object) -> NoReturn:
        raise OSError(code, os.strerror(code))

    return fail


def test_a_full_disk_leaves_no_half_object(tmp_path: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("needs a device that is always full")
    store = LocalObjectStore(tmp_path, CLOCK)
    writer = store.create("a/b")
    writer._file.close()
    writer._file = open("/dev/full", "wb", buffering=1000)  # noqa: SIM115, PTH123  a stand-in
    with pytest.raises(StorageFullError):
        writer.write(b"x" * 5000)
    assert list((tmp_path / "unfinished").iterdir()) == []
    assert list(store.list("")) == []


@pytest.mark.parametrize(
    ("call", "code", "error"),
    [
        ("lakebed.backends.local.object_store.sync_file", errno.ENOSPC, StorageFullError),
        ("lakebed.backends.local.object_store.sync_file", errno.EIO, UnavailableError),
        ("os.link", errno.EDQUOT, StorageFullError),
        ("os.link", errno.EIO, UnavailableError),
    ],
)
def test_an_object_that_cannot_be_finished_is_not_there(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    call: str,
    code: int,
    error: type[LakebedError],
) -> None:
    store = LocalObjectStore(tmp_path, CLOCK)
    writer = store.create("a")
    writer.write(b"x")
    with monkeypatch.context() as broken:
        broken.setattr(call, failing(code))
        with pytest.raises(error):
            writer.finish()
    assert list((tmp_path / "unfinished").iterdir()) == []
    assert store.look("a") is None


def test_an_object_whose_folder_cannot_be_synced_may_be_there(
    store: LocalObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = store.create("a")
    monkeypatch.setattr("lakebed.backends.local.object_store.sync_folder", failing(errno.EIO))
    with pytest.raises(UnknownOutcomeError):
        writer.finish()
    assert store.look("a") is not None


@pytest.mark.parametrize("works", [True, False])
def test_a_large_object_goes_to_the_disk_while_it_is_written(
    store: LocalObjectStore, monkeypatch: pytest.MonkeyPatch, works: bool
) -> None:
    begun: list[tuple[int, int]] = []

    def hint(_descriptor: int, start: int, size: int, _advice: int) -> None:
        begun.append((start, size))
        if not works:
            raise OSError(errno.EINVAL, "this file system takes no hints")

    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr("os.posix_fadvise", hint, raising=False)
    monkeypatch.setattr("os.POSIX_FADV_DONTNEED", 4, raising=False)
    data = bytes(range(256)) * 4096
    writer = store.create("a")
    for _ in range(20):
        writer.write(data)
    assert sum(size for _, size in begun) <= 20 * len(data)  # what is written, once, in order
    assert [start for start, _ in begun] == [
        sum(s for _, s in begun[:n]) for n in range(len(begun))
    ]
    assert len(begun) == 2
    assert writer.finish().size == 20 * len(data)
    assert store.read("a", [(0, 20 * len(data))]) == [data * 20]


def test_every_new_folder_is_synced_before_an_object_is_called_finished(
    tmp_path: Path, store: LocalObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[Path] = []
    for module in ("durable_folder", "object_store"):
        monkeypatch.setattr(f"lakebed.backends.local.{module}.sync_folder", synced.append)
    store.create("a/b/c").finish()
    objects = tmp_path / "objects"
    assert synced == [objects, objects / "a", objects / "a" / "b"]
    store.create("a/b/d").finish()
    assert synced[3:] == [objects / "a" / "b"]
    # One made by another process, which may not have synced it yet.
    (objects / "e").mkdir()
    store.create("e/f").finish()
    assert synced[4:] == [objects, objects / "e"]


def test_an_object_below_another_object_is_refused(store: LocalObjectStore) -> None:
    store.create("a").finish()
    writer = store.create("a/b")
    with pytest.raises(InvalidError):
        writer.finish()


def test_an_object_that_cannot_be_read_is_unavailable(
    store: LocalObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.create("a").finish()
    monkeypatch.setattr("os.open", failing(errno.EMFILE))
    with pytest.raises(UnavailableError):
        store.read("a", [(0, 0)])


def test_a_writer_that_is_dropped_cleans_up(tmp_path: Path, store: LocalObjectStore) -> None:
    writer = store.create("a")
    writer.write(b"x")
    del writer
    assert list((tmp_path / "unfinished").iterdir()) == []


def test_a_full_disk_refuses_an_entry_and_the_log_goes_on(
    tmp_path: Path, log: TransactionLog
) -> None:
    with log._database.writing() as connection:  # type: ignore[attr-defined]  # looks inside
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count={pages}")
    with pytest.raises(StorageFullError):
        log.append(TWO, b"x" * 100_000)
    assert [n for n, _ in log.read_after(TransactionNumber(0))] == [1]
    with log._database.writing() as connection:  # type: ignore[attr-defined]  # looks inside
        connection.execute("PRAGMA max_page_count=1000000")
    log.append(TWO, b"x" * 100_000)


def test_a_log_that_another_process_holds_is_unavailable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_database, "BUSY_SECONDS", 0.01)
    log = SqliteTransactionLogs(tmp_path, CLOCK).open(TABLE)
    log.append(ONE, b"")
    other = sqlite3.connect(tmp_path / "t1.sqlite", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(UnavailableError) as error:
        log.append(TWO, b"")
    assert not isinstance(error.value, StorageFullError)
    assert error.value.facts["process"] == os.getpid()
    assert [n for n, _ in log.read_after(TransactionNumber(0))] == [1]
    other.execute("ROLLBACK")
    other.close()
    log.append(TWO, b"")


@pytest.mark.parametrize(
    ("code", "error"), [(errno.EACCES, DeniedError), (errno.EIO, UnavailableError)]
)
def test_a_log_that_cannot_be_looked_for_is_not_taken_for_missing(
    log: TransactionLog, monkeypatch: pytest.MonkeyPatch, code: int, error: type[LakebedError]
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr("os.stat", failing(code))
        for ask in (log.newest, lambda: list(log.read_after(ZERO)), lambda: log.append(TWO, b"")):
            with pytest.raises(error):
                ask()
    assert log.newest() == 1


def test_a_disk_that_fails_during_a_commit_leaves_the_outcome_unknown() -> None:
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR_FSYNC
    wrote = sqlite_database.meaning_of(error, Path("x"), wrote=True)
    read = sqlite_database.meaning_of(error, Path("x"), wrote=False)
    assert (type(wrote), type(read)) == (UnknownOutcomeError, UnavailableError)


def test_a_damaged_page_is_corrupt(tmp_path: Path) -> None:
    logs = SqliteTransactionLogs(tmp_path, CLOCK)
    log = logs.open(TABLE)
    for n in range(1, 200):
        log.append(TransactionNumber(n), b"x" * 3000)
    logs.close()
    file = tmp_path / "t1.sqlite"
    body = bytearray(file.read_bytes())
    for page in range(1, len(body) // 4096):
        body[page * 4096 : page * 4096 + 100] = b"\xff" * 100
    file.write_bytes(body)
    with pytest.raises(CorruptError):
        list(logs.open(TABLE).read_after(TransactionNumber(0)))


@pytest.mark.parametrize("column", ["name", "table_id"])
def test_a_name_that_became_no_text_is_corrupt(tmp_path: Path, column: str) -> None:
    """A byte that changed inside a row is no matter to SQLite: no page is damaged."""
    registry = SqliteTableRegistry(tmp_path)
    registry.claim(TableName("trips"), TableId("a" * 32))
    registry.close()
    with sqlite3.connect(tmp_path / "tables.sqlite") as connection:
        connection.execute(f"UPDATE name SET {column} = CAST(x'ff' || {column} AS TEXT)")
    connection.close()
    registry = SqliteTableRegistry(tmp_path)
    with pytest.raises(CorruptError, match="the database is damaged"):
        registry.list()
    registry.close()


@pytest.mark.parametrize("table", ["", "../t1", "a/b", "a.b", "a\x00", "x" * 129, "ü"])
def test_what_is_no_table_id_is_refused(tmp_path: Path, table: str) -> None:
    with pytest.raises(InvalidError):
        SqliteTransactionLogs(tmp_path, CLOCK).open(TableId(table))


@pytest.mark.parametrize("changed", [b"amaunt INTEGER", b"am\xffunt INTEGER"])
def test_a_column_whose_name_was_changed_is_damage_and_a_bug_is_a_bug(
    tmp_path: Path, changed: bytes
) -> None:
    path = tmp_path / "some.sqlite"
    schema = "CREATE TABLE some (name TEXT, amount INTEGER) STRICT"
    database = sqlite_database.SqliteDatabase(path, schema)
    with database.writing() as connection:
        connection.execute("INSERT INTO some VALUES ('a', 1)")
    with pytest.raises(AssertionError, match="no such column: amaunt"):
        asked(database, "SELECT amaunt FROM some")
    database.close()
    path.write_bytes(path.read_bytes().replace(b"amount INTEGER", changed))
    for statement in ("SELECT amount FROM some", "UPDATE some SET amount = 2"):
        with pytest.raises(CorruptError, match=r"it has no column some\.amount any more"):
            asked(database, statement)


def asked(database: sqlite_database.SqliteDatabase, statement: str) -> None:
    with database.writing() as connection:
        connection.execute(statement)


def test_a_log_in_a_missing_folder_is_unavailable(tmp_path: Path) -> None:
    logs = SqliteTransactionLogs(tmp_path / "gone", CLOCK)
    with pytest.raises(UnavailableError):
        logs.open(TABLE).append(ONE, b"")
    with pytest.raises(UnavailableError):
        logs.tables()
