"""What only a directory has to keep: promises between processes, and after a process was killed
(H28, H29)."""

import multiprocessing
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from lakebed.backends.local import (
    LocalObjectStore,
    SqliteJobQueues,
    SqliteTransactionLog,
    SqliteTransactionLogs,
    open_lake_directory,
)
from lakebed.backends.system import SystemClock
from lakebed.errors import LogConflictError, ObjectExistsError
from lakebed.model.names import TableId, TransactionNumber
from lakebed.ports.job_queue import Message

TABLE = TableId("t1")
PROCESSES, ENTRIES = 4, 50
spawn = multiprocessing.get_context("spawn")


def append_entries(root: Path, worker: int) -> None:
    log = SqliteTransactionLogs(root, SystemClock()).open(TABLE)
    last = 0
    for entry in range(ENTRIES):
        while True:
            for number, _ in log.read_after(TransactionNumber(last)):
                last = number
            try:
                log.append(TransactionNumber(last + 1), b"%d/%d" % (worker, entry))
            except LogConflictError:
                continue
            break


def put_objects(root: Path, worker: int) -> list[str]:
    store = LocalObjectStore(root, SystemClock())
    won = []
    for n in range(ENTRIES):
        writer = store.create(f"new/{n}/x")
        writer.write(b"%d" % worker * 1000)
        try:
            writer.finish()
        except ObjectExistsError:
            continue
        won.append(f"{n}/{worker}")
    return won


def take_messages(root: Path, _worker: int) -> list[bytes]:
    queue = SqliteJobQueues(root, SystemClock()).open("jobs")
    taken = []
    while received := queue.receive(messages_max=3, hidden_seconds=60):
        for message in received:
            taken.append(message.body)
            queue.delete(message.receipt)
    return taken


def open_directory(root: Path, _worker: int) -> Path:
    return open_lake_directory(root / "lake").path


def test_processes_that_race_for_numbers_leave_no_gap_and_no_double(tmp_path: Path) -> None:
    with spawn.Pool(PROCESSES) as pool:
        pool.starmap(append_entries, [(tmp_path, n) for n in range(PROCESSES)])
    entries = list(
        SqliteTransactionLogs(tmp_path, SystemClock()).open(TABLE).read_after(TransactionNumber(0))
    )
    assert [number for number, _ in entries] == list(range(1, PROCESSES * ENTRIES + 1))
    wanted = sorted(b"%d/%d" % (w, e) for w in range(PROCESSES) for e in range(ENTRIES))
    assert sorted(body for _, body in entries) == wanted


def test_processes_that_race_for_paths_messages_and_the_directory(tmp_path: Path) -> None:
    messages = [Message(b"%d" % n) for n in range(100)]
    SqliteJobQueues(tmp_path, SystemClock()).open("jobs").send(messages)
    jobs = [(tmp_path, n) for n in range(PROCESSES)]
    with spawn.Pool(PROCESSES) as pool:
        won = pool.starmap(put_objects, jobs, chunksize=1)
        taken = pool.starmap(take_messages, jobs, chunksize=1)
        opened = pool.starmap(open_directory, jobs, chunksize=1)

    store = LocalObjectStore(tmp_path, SystemClock())
    winners = [f"{n}/{store.read(f'new/{n}/x', [(0, 1)])[0].decode()}" for n in range(ENTRIES)]
    assert sorted(sum(won, [])) == sorted(winners)  # noqa: RUF017  four short lists
    assert sorted(sum(taken, [])) == sorted(b"%d" % n for n in range(100))  # noqa: RUF017  the same
    assert set(opened) == {tmp_path / "lake"}


def run_and_kill(code: str, root: Path) -> None:
    """Run a program until it has printed a line, then kill it as a failing machine would."""
    program = subprocess.Popen(
        [sys.executable, "-c", dedent(code), str(root)], stdout=subprocess.PIPE, text=True
    )
    assert program.stdout is not None
    with program.stdout:
        assert program.stdout.readline() == "ready\n"
        program.send_signal(signal.SIGKILL)
        program.wait()


UNFINISHED = """
    import sys, time
    from lakebed.backends.local import LocalObjectStore
    from lakebed.backends.system import SystemClock
    store = LocalObjectStore(sys.argv[1], SystemClock())
    finished = store.create("a/finished")
    finished.write(b"whole")
    finished.finish()
    writer = store.create("a/unfinished")
    writer.write(b"x" * 3_000_000)
    print("ready", flush=True)
    time.sleep(60)
"""


def test_a_killed_writer_leaves_nothing_to_see_and_is_cleaned_up(tmp_path: Path) -> None:
    run_and_kill(UNFINISHED, tmp_path)
    store = LocalObjectStore(tmp_path, SystemClock())
    living = store.create("a/living")
    living.write(b"y" * 3_000_000)

    assert list(store.list("")) == ["a/finished"]
    assert len(list((tmp_path / "unfinished").iterdir())) == 2
    assert store.abort_unfinished(older_than_seconds=3600) == 0
    assert store.abort_unfinished(older_than_seconds=-1) == 1
    assert store.abort_unfinished(older_than_seconds=-1) == 0

    living.finish()
    assert list(store.list("")) == ["a/finished", "a/living"]
    assert list((tmp_path / "unfinished").iterdir()) == []


APPENDING = """
    import sys, time
    from lakebed.backends.local import SqliteTransactionLogs
    from lakebed.backends.system import SystemClock
    log = SqliteTransactionLogs(sys.argv[1], SystemClock()).open("t1")
    for number in range(1, 101):
        log.append(number, b"x" * 1000)
    print("ready", flush=True)
    time.sleep(60)
"""


def test_what_a_killed_process_committed_is_there(tmp_path: Path) -> None:
    run_and_kill(APPENDING, tmp_path)
    log = SqliteTransactionLogs(tmp_path, SystemClock()).open(TABLE)
    assert len(list(log.read_after(TransactionNumber(0)))) == 100
    log.append(TransactionNumber(101), b"")


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_log_refuses_to_work_in_a_forked_child(tmp_path: Path) -> None:
    log = SqliteTransactionLogs(tmp_path, SystemClock()).open(TABLE)
    log.append(TransactionNumber(1), b"")
    code = 1
    child = os.fork()
    if child == 0:
        try:
            log.append(TransactionNumber(2), b"")
        except AssertionError as error:
            code = 0 if "spawn, never fork" in str(error) else 2
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert len(list(log.read_after(TransactionNumber(0)))) == 1


def test_a_log_is_synced_with_every_commit(tmp_path: Path) -> None:
    logs = SqliteTransactionLogs(tmp_path, SystemClock())
    log = logs.open(TABLE)
    log.append(TransactionNumber(1), b"")
    assert isinstance(log, SqliteTransactionLog)
    with log._database.reading() as connection:
        assert connection.execute("PRAGMA synchronous").fetchone() == (2,)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    logs.close()
    with sqlite3.connect(tmp_path / "t1.sqlite") as other:
        assert other.execute("SELECT count(*) FROM entry").fetchone() == (1,)
    other.close()


@pytest.mark.parametrize("left", ["half a database", ""])
def test_a_database_that_another_process_left_half_made_is_not_in_the_way(
    tmp_path: Path, left: str
) -> None:
    (tmp_path / ".t1.sqlite.1.1.new").write_text(left)
    logs = SqliteTransactionLogs(tmp_path, SystemClock())
    assert logs.tables() == []
    logs.open(TABLE).append(TransactionNumber(1), b"")
    assert logs.tables() == [TABLE]
