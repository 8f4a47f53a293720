"""Logs in SQLite: few of them are open at once, whoever has them in hand."""

from pathlib import Path

from lakebed.backends.local.transaction_logs import SqliteTransactionLog, SqliteTransactionLogs
from lakebed.backends.memory import VirtualClock
from lakebed.model.names import TableId, TransactionNumber

ONE, TWO = TransactionNumber(1), TransactionNumber(2)


def open_in(folder: Path) -> list[str]:
    """Return logs that are open: SQLite deletes their shared memory when they are closed."""
    return sorted(path.name[:-11] for path in folder.glob("*.sqlite-shm"))


def bodies(log: SqliteTransactionLog) -> list[bytes]:
    return [body for _, body in log.read_after(TransactionNumber(0))]


def test_logs_that_were_closed_are_opened_again_within_the_bound(tmp_path: Path) -> None:
    logs = SqliteTransactionLogs(tmp_path, VirtualClock(), open_max=2)
    names = ["a", "b", "c", "d"]
    in_hand = {name: logs.open(TableId(name)) for name in names}
    for name, log in in_hand.items():
        log.append(ONE, name.encode())
    assert open_in(tmp_path) == ["c", "d"]
    for name, log in in_hand.items():  # each was closed meanwhile
        log.append(TWO, b"2")
        assert bodies(log) == [name.encode(), b"2"]
        assert len(open_in(tmp_path)) == 2
    logs.close()
    assert open_in(tmp_path) == []


def test_a_log_in_use_is_not_closed_when_another_one_is_opened(tmp_path: Path) -> None:
    logs = SqliteTransactionLogs(tmp_path, VirtualClock(), open_max=1)
    first, second = logs.open(TableId("a")), logs.open(TableId("b"))
    first.append(ONE, b"1")
    with first._database.writing() as connection:
        second.append(ONE, b"1")
        connection.execute("INSERT INTO entry VALUES (2, x'32')")
    assert bodies(first) == [b"1", b"2"]
    assert open_in(tmp_path) == ["a"]
    logs.close()


def test_a_table_has_one_log_in_a_process(tmp_path: Path) -> None:
    logs = SqliteTransactionLogs(tmp_path, VirtualClock(), open_max=1)
    log = logs.open(TableId("a"))
    logs.open(TableId("b")).append(ONE, b"1")
    assert logs.open(TableId("a")) is log
