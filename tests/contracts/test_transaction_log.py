"""What every log keeps: numbers are used once, reads skip nothing, and nothing is written or read
behind another history (H9, H10, H33, H34)."""

import threading
from itertools import pairwise

import pytest

from lakebed.backends.aws.transaction_logs import DynamoTransactionLog
from lakebed.backends.local.transaction_logs import SqliteTransactionLog
from lakebed.backends.memory import MemoryTransactionLog, VirtualClock
from lakebed.errors import InvalidError, LogConflictError, LogRolledBackError, LogTruncatedError
from lakebed.model.names import TableId, TransactionNumber, entry_checksum
from lakebed.ports.transaction_log import TransactionLog
from tests.contracts.conftest import Logs

TABLE = TableId("t1")


def number(n: int) -> TransactionNumber:
    return TransactionNumber(n)


def entries(log: TransactionLog, after: int = 0) -> list[tuple[int, bytes]]:
    return [(int(n), body) for n, body in log.read_after(number(after))]


@pytest.fixture
def log(logs: Logs) -> TransactionLog:
    return logs().open(TABLE)


def filled(log: TransactionLog, count: int) -> TransactionLog:
    for n in range(1, count + 1):
        log.append(number(n), b"body %d" % n)
    return log


def test_what_was_appended_is_read_in_order_by_any_reader(logs: Logs) -> None:
    filled(logs().open(TABLE), 3)
    wanted = [(1, b"body 1"), (2, b"body 2"), (3, b"body 3")]
    assert entries(logs().open(TABLE)) == wanted
    assert entries(logs().open(TABLE), after=1) == wanted[1:]
    assert entries(logs().open(TABLE), after=3) == []


def test_a_log_that_was_never_written_reads_as_empty_and_is_not_listed(logs: Logs) -> None:
    assert entries(logs().open(TABLE)) == []
    logs().open(TABLE).truncate(number(5))
    assert entries(logs().open(TABLE)) == []
    assert logs().open(TABLE).newest() == 0
    assert list(logs().open(TABLE).read_scattered(number(0))) == []
    assert logs().tables() == []


def test_tables_with_a_log_are_listed_in_order(logs: Logs) -> None:
    for table in ("b", "a", "c-1_X"):
        logs().open(TableId(table)).append(number(1), b"")
    assert logs().tables() == ["a", "b", "c-1_X"]


def test_logs_of_two_tables_do_not_meet(logs: Logs) -> None:
    logs().open(TableId("a")).append(number(1), b"a")
    logs().open(TableId("b")).append(number(1), b"b")
    assert entries(logs().open(TableId("a"))) == [(1, b"a")]


def test_a_taken_number_is_refused_and_keeps_its_body(log: TransactionLog) -> None:
    filled(log, 2)
    for body in (b"body 2", b"other"):
        with pytest.raises(LogConflictError):
            log.append(number(2), body)
    assert entries(log) == [(1, b"body 1"), (2, b"body 2")]


def lose(log: TransactionLog, *numbers: int) -> None:
    """Take entries out of a log, as a cut or a restored copy does."""
    for n in numbers:
        match log:
            case MemoryTransactionLog():
                del log._bodies[number(n)]
            case SqliteTransactionLog():
                with log._database.writing() as connection:
                    connection.execute("DELETE FROM entry WHERE number = ?", (n,))
            case DynamoTransactionLog():
                log._items.transact([{"Delete": {"Key": log._key(number(n))}}])
            case _:
                raise AssertionError(log)


def test_nothing_is_appended_behind_a_missing_entry(log: TransactionLog) -> None:
    filled(log, 2)
    for after in (None, entry_checksum(b"body 3")):
        with pytest.raises(LogRolledBackError) as error:
            log.append(number(4), b"body 4", after)
        assert (error.value.number, error.value.facts["log_ends"]) == (3, 2)
    assert [n for n, _ in entries(log)] == [1, 2]
    log.append(number(3), b"body 3")
    log.append(number(4), b"body 4", entry_checksum(b"body 3"))
    assert [n for n, _ in entries(log)] == [1, 2, 3, 4]


def test_nothing_is_appended_to_a_log_that_was_never_written_but_entry_1(
    log: TransactionLog, logs: Logs
) -> None:
    with pytest.raises(LogRolledBackError):
        log.append(number(2), b"body 2")
    assert logs().tables() == []


def test_an_entry_is_appended_only_behind_the_one_that_its_writer_has_read(
    log: TransactionLog,
) -> None:
    filled(log, 2)
    with pytest.raises(LogRolledBackError):
        log.append(number(3), b"body 3", entry_checksum(b"another body 2"))
    assert [n for n, _ in entries(log)] == [1, 2]
    log.append(number(3), b"body 3", entry_checksum(b"body 2"))
    log.append(number(4), b"body 4", None)
    assert [n for n, _ in entries(log)] == [1, 2, 3, 4]


def test_a_taken_number_is_told_first(log: TransactionLog) -> None:
    filled(log, 3)
    with pytest.raises(LogConflictError):
        log.append(number(3), b"other", entry_checksum(b"another body 2"))


def test_what_follows_an_entry_is_read_only_behind_the_one_that_its_reader_has_read(
    log: TransactionLog, long_log: int
) -> None:
    filled(log, long_log)
    for n in (1, 2, 40, 41, long_log - 1, long_log):
        checksum = entry_checksum(b"body %d" % n)
        read = [int(at) for at, _ in log.read_after(number(n), checksum)]
        assert read == list(range(n + 1, long_log + 1))
        with pytest.raises(LogRolledBackError) as error:
            list(log.read_after(number(n), entry_checksum(b"another")))
        assert error.value.number == n


def test_reading_from_behind_the_end_is_told(log: TransactionLog) -> None:
    filled(log, 3)
    assert entries(log, after=3) == []
    for after in (4, 5, 100):
        with pytest.raises(LogRolledBackError) as error:
            entries(log, after=after)
        assert error.value.facts["log_ends"] == 3


def test_an_entry_behind_truncated_ones_needs_no_checksum(log: TransactionLog) -> None:
    filled(log, 5).truncate(number(4))
    read = [n for n, _ in log.read_after(number(3), entry_checksum(b"whatever"))]
    assert read == [4, 5]
    log.append(number(6), b"body 6", entry_checksum(b"body 5"))


def test_reading_stops_at_a_gap_and_what_lies_behind_it_is_found(log: TransactionLog) -> None:
    filled(log, 6)
    lose(log, 3, 4)
    assert [n for n, _ in entries(log)] == [1, 2]
    assert entries(log, after=2) == []
    for after in (3, 4):
        with pytest.raises(LogRolledBackError):
            entries(log, after=after)
    assert log.newest() == 6
    assert list(log.read_scattered(number(2))) == [(5, b"body 5"), (6, b"body 6")]
    with pytest.raises(LogRolledBackError):
        log.append(number(5 - 1), b"body 4", entry_checksum(b"body 3"))


@pytest.mark.parametrize("lost", [[3], [3, 4], [1], [1, 2, 3, 4, 5]], ids=str)
def test_a_gap_is_not_closed(log: TransactionLog, lost: list[int]) -> None:
    filled(log, 6)
    lose(log, *lost)
    read, scattered = entries(log), list(log.read_scattered(number(0)))
    before = lost[0] - 1
    for after in (None, entry_checksum(b"body %d" % before)):
        with pytest.raises(LogRolledBackError) as error:
            log.append(number(lost[0]), b"another", after)
        assert (error.value.number, error.value.facts["log_ends"]) == (before, 6)
    assert entries(log) == read
    assert list(log.read_scattered(number(0))) == scattered


def test_a_gap_behind_entries_that_were_emptied_is_not_closed(log: TransactionLog) -> None:
    filled(log, 8)
    log.truncate(number(4))
    lose(log, 4, 5)
    with pytest.raises(LogRolledBackError):
        log.append(number(4), b"another")
    assert log.newest() == 8


def test_who_knows_that_an_entry_was_followed_writes_no_other_behind_it(
    log: TransactionLog,
) -> None:
    """Where the entry itself says so, as in DynamoDB; other logs go on behind what they hold, and
    its writer alone may know more."""
    filled(log, 4)
    lose(log, 3, 4)
    assert entries(log) == [(1, b"body 1"), (2, b"body 2")]
    if isinstance(log, DynamoTransactionLog):
        assert log.newest() == 3
        with pytest.raises(LogRolledBackError) as error:
            log.append(number(3), b"another", entry_checksum(b"body 2"))
        assert (error.value.number, error.value.facts["log_ends"]) == (2, 3)
        log.truncate(number(3))
        assert entries(log, after=1) == [(2, b"body 2")]
    else:
        assert log.newest() == 2
        log.append(number(3), b"another", entry_checksum(b"body 2"))
        assert entries(log, after=2) == [(3, b"another")]


def resumed(log: TransactionLog, n: int, *, newest: int) -> bool:
    """Let a log go on with entry n; False: this kind of log refuses for good."""
    if isinstance(log, DynamoTransactionLog):
        with pytest.raises(InvalidError, match="point-in-time recovery"):
            log.resume(number(n), b"resumed", newest=number(newest))
        return False
    log.resume(number(n), b"resumed", newest=number(newest))
    return True


def test_a_log_that_lost_entries_goes_on_behind_all_that_were_known(log: TransactionLog) -> None:
    filled(log, 6)
    lose(log, 3, 4)
    if not resumed(log, 10, newest=6):
        assert log.newest() == 6
        return
    assert entries(log, after=9) == [(10, b"resumed")]
    assert list(log.read_scattered(number(0))) == [(10, b"resumed")]
    for after in (0, 2, 6, 8):
        with pytest.raises(LogTruncatedError) as error:
            entries(log, after=after)
        assert error.value.oldest == 10
    for taken in (3, 7, 9, 10):
        with pytest.raises(LogConflictError):
            log.append(number(taken), b"late", entry_checksum(b"body %d" % (taken - 1)))
    log.append(number(11), b"body 11", entry_checksum(b"resumed"))
    assert [n for n, _ in entries(log, after=9)] == [10, 11]


def test_a_log_that_is_gone_goes_on(log: TransactionLog, logs: Logs) -> None:
    if resumed(log, 7, newest=0):
        assert logs().tables() == [TABLE]
        assert entries(log, after=6) == [(7, b"resumed")]
        assert log.newest() == 7


def test_a_log_to_which_somebody_wrote_meanwhile_does_not_go_on(log: TransactionLog) -> None:
    filled(log, 3)
    refused = InvalidError if isinstance(log, DynamoTransactionLog) else LogConflictError
    for newest in (2, 4, 0):
        with pytest.raises(refused):
            log.resume(number(9), b"resumed", newest=number(newest))
    assert [n for n, _ in entries(log)] == [1, 2, 3]


def test_what_is_scattered_leaves_out_what_was_truncated(
    log: TransactionLog, long_log: int
) -> None:
    filled(log, long_log).truncate(number(4))
    found = [int(n) for n, _ in log.read_scattered(number(0))]
    assert found == list(range(4, long_log + 1))
    assert log.newest() == long_log


@pytest.mark.parametrize("body", [b"", b"\x00", bytes(range(256)), b"x" * 1_000_000])
def test_bodies_come_back_as_they_were(log: TransactionLog, body: bytes) -> None:
    log.append(number(1), body)
    assert entries(log) == [(1, body)]


def test_long_logs_are_read_whole(log: TransactionLog, long_log: int) -> None:
    filled(log, long_log)
    assert [n for n, _ in entries(log, after=7)] == list(range(8, long_log + 1))


def test_large_entries_are_read_whole(log: TransactionLog) -> None:
    for n in range(1, 8):
        log.append(number(n), bytes([n]) * 1_500_000)
    assert [(n, body[:1]) for n, body in entries(log)] == [(n, bytes([n])) for n in range(1, 8)]


def test_entries_appended_while_reading_are_read_or_left_for_the_next_time(
    log: TransactionLog,
) -> None:
    filled(log, 3)
    seen = []
    for n, _ in log.read_after(number(0)):
        seen.append(int(n))
        if n == 2:
            log.append(number(4), b"")
    assert seen in ([1, 2, 3], [1, 2, 3, 4])


def test_truncation_empties_bodies_and_the_reader_learns_where_the_log_starts(
    log: TransactionLog,
) -> None:
    filled(log, 5).truncate(number(4))
    assert [n for n, _ in entries(log, after=3)] == [4, 5]
    for after in (0, 1, 2):
        with pytest.raises(LogTruncatedError) as error:
            entries(log, after=after)
        assert error.value.oldest == 4


def test_numbers_stay_taken_after_truncation(log: TransactionLog) -> None:
    filled(log, 5).truncate(number(4))
    for n in range(1, 6):
        with pytest.raises(LogConflictError):
            log.append(number(n), b"a stalled writer wakes up")
    log.append(number(6), b"body 6")
    assert [n for n, _ in entries(log, after=3)] == [4, 5, 6]


def test_truncation_may_be_repeated_and_never_goes_back(log: TransactionLog) -> None:
    filled(log, 5).truncate(number(4))
    log.truncate(number(4))
    log.truncate(number(2))
    with pytest.raises(LogTruncatedError) as error:
        entries(log, after=2)
    assert error.value.oldest == 4


def test_the_newest_entry_keeps_its_body(log: TransactionLog) -> None:
    filled(log, 5).truncate(number(100))
    assert entries(log, after=4) == [(5, b"body 5")]
    log.append(number(6), b"body 6")
    assert entries(log, after=5) == [(6, b"body 6")]


def test_a_reader_overtaken_by_truncation_hears_of_it_and_skips_nothing(
    log: TransactionLog, long_log: int
) -> None:
    filled(log, long_log)
    reader = log.read_after(number(0))
    seen = [int(next(reader)[0])]
    log.truncate(number(long_log - 10))
    with pytest.raises(LogTruncatedError):
        seen.extend(int(n) for n, _ in reader)
    assert all(b == a + 1 for a, b in pairwise(seen))


def test_many_tables_may_be_open_at_once(logs: Logs) -> None:
    view = logs()
    opened = [view.open(TableId(f"t{n}")) for n in range(200)]
    for n in (1, 2):
        for log in opened:
            log.append(number(n), b"")
    assert all(len(entries(log)) == 2 for log in opened)
    assert len(view.tables()) == 200


def test_the_store_tells_its_time(log: TransactionLog, clock: VirtualClock) -> None:
    before = log.store_time()
    clock.advance(5)
    assert log.store_time() == before + 5_000_000


@pytest.mark.parametrize("shared", [True, False], ids=["one view", "a view each"])
def test_threads_that_race_for_numbers_leave_no_gap_and_no_double(logs: Logs, shared: bool) -> None:
    view = logs()
    won: list[tuple[int, bytes]] = []

    def work(worker: int) -> None:
        log = (view if shared else logs()).open(TABLE)
        last = 0
        for job in range(25):
            body = b"%d/%d" % (worker, job)
            while True:
                for n, _ in log.read_after(number(last)):
                    last = int(n)
                try:
                    log.append(number(last + 1), body)
                except LogConflictError:
                    continue
                won.append((last + 1, body))
                break

    threads = [threading.Thread(target=work, args=(worker,)) for worker in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert entries(logs().open(TABLE)) == sorted(won)
    assert [n for n, _ in sorted(won)] == list(range(1, 101))


def test_a_log_that_is_removed_is_gone_and_others_stay(logs: Logs) -> None:
    other = TableId("t2")
    for table in (TABLE, other):
        filled(logs().open(table), 3).append(number(4), b"x" * 50_000)
    for _ in ("once", "again"):
        logs().remove(TABLE)
        assert logs().tables() == [other]
        assert entries(logs().open(TABLE)) == []
    assert len(entries(logs().open(other))) == 4
