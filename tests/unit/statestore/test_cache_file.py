"""One cache file that heads and processes share; deleting it is always safe (H27)."""

import signal
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest

from lakebed.backends.local.transaction_logs import SqliteTransactionLogs
from lakebed.backends.system.clock import SystemClock
from lakebed.errors import NewerFormatError, UnavailableError
from lakebed.model.names import TableId, TransactionNumber
from lakebed.statestore.answers import Retry
from lakebed.statestore.head import TableHead
from lakebed.statestore.log_entries.file_changes import AddFiles
from lakebed.statestore.table_state import layout, proven_state
from lakebed.statestore.table_state.closable_state import ClosableState
from lakebed.statestore.table_state.database_errors import translated
from lakebed.statestore.table_state.format_number import columns_of
from lakebed.statestore.table_state.layout import (
    STATE_FORMAT,
    open_cache,
    problem_of_cache,
    set_aside_if_damaged,
)
from lakebed.statestore.table_state.state import TableState
from tests.dsl import TableStory
from tests.dsl.format_numbers import change_number, make_newer, number_in


def followed_cache(path: Path) -> TableStory:
    """Make the cache of a table, and close it."""
    story = TableStory()
    with closing(open_cache(path)) as opened:
        story.another_head(state=TableState(opened)).follow()
    return story


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cache.sqlite"


def test_two_heads_share_a_file_and_apply_each_entry_once(path: Path) -> None:
    story = TableStory()
    heads = [story.another_head(state=TableState(open_cache(path))) for _ in range(2)]
    for index in range(10):
        story.when_committed(AddFiles(()), head=heads[index % 2])
    assert heads[0].state.digest() == heads[1].state.digest()
    story.head.follow()
    assert heads[0].state.digest() == story.state.digest()


def test_entries_that_another_process_applied_meanwhile_are_not_applied_again(path: Path) -> None:
    story = TableStory()
    for name in "abc":
        story.given_files("all", **{name: 1})
    slow, fast = (story.another_head(state=TableState(open_cache(path))) for _ in range(2))
    entries = list(story.log.log.read_after(TransactionNumber(0)))

    class Overtaken:
        """A log that lets the other head follow while it is being read."""

        def read_after(self, number: int, _: object) -> object:
            fast.follow()
            return iter(entries[number:])

    slow._log = Overtaken()  # type: ignore[assignment]  # only reads
    slow.follow()
    assert slow.state.digest() == story.state.digest()


def test_a_reader_sees_one_version_while_another_writes(path: Path) -> None:
    story = TableStory()
    reader, writer = (story.another_head(state=TableState(open_cache(path))) for _ in range(2))
    with reader.reading() as state:
        before = state.head().number
        story.when_committed(AddFiles(()), head=writer)
        assert state.head().number == before
        with reader.reading() as inside:
            assert inside.head().number == before
    with reader.reading() as state:
        assert state.head().number == before + 1


@pytest.mark.parametrize("left", [(), ("-wal",), ("-wal", "-shm"), ("-shm",)])
def test_deleting_the_file_is_safe_whatever_is_left_beside_it(
    path: Path, left: tuple[str, ...]
) -> None:
    story = TableStory()
    living = story.another_head(state=TableState(open_cache(path)))
    story.when_committed(AddFiles(()), head=living)
    for suffix in ("", "-wal", "-shm"):
        if suffix not in left:
            path.with_name(path.name + suffix).unlink()
    fresh = story.another_head(state=TableState(open_cache(path)))
    for head in (fresh, living, fresh):
        story.when_committed(AddFiles(()), head=head)
        head.follow()
    living.follow()
    living.state.connection.close()
    story.when_committed(AddFiles(()), head=fresh)
    story.head.follow()
    assert fresh.state.digest() == story.state.digest()
    assert fresh.state.connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


@pytest.mark.parametrize("added", ["TABLE newer(x)", "TABLE head ADD COLUMN newer"])
def test_a_cache_of_a_newer_format_is_refused_and_left_as_it_is(path: Path, added: str) -> None:
    followed_cache(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"{'ALTER' if 'ADD' in added else 'CREATE'} {added}")
        connection.execute(f"PRAGMA user_version={STATE_FORMAT + 1}")
        connection.commit()
    before = path.read_bytes()
    for _ in range(2):
        with pytest.raises(NewerFormatError, match="upgrade"):
            open_cache(path)
        assert not set_aside_if_damaged(path), "two releases do not fight over a cache"
    assert path.read_bytes() == before


def test_who_has_a_cache_open_that_a_newer_release_upgrades_writes_no_more_to_it(
    path: Path,
) -> None:
    story = TableStory()

    def set_aside() -> None:
        set_aside_if_damaged(path)

    state = ClosableState(lambda: TableState(open_cache(path)), set_aside=set_aside)
    head = TableHead(story.log, state, clock=story.clock, rng=story.rng)
    head.follow()
    story.when_committed(AddFiles(()))
    make_newer(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    before = path.read_bytes()
    for _ in range(2):
        with pytest.raises(NewerFormatError):
            head.follow()
    assert path.read_bytes() == before
    assert [one.name for one in path.parent.glob("*.damaged-*")] == []


@pytest.mark.parametrize("number", [-5, 0, 1, STATE_FORMAT - 1, STATE_FORMAT + 1, 99, 1 << 30])
def test_a_cache_whose_number_its_columns_contradict_is_set_aside_and_made_anew(
    path: Path, number: int
) -> None:
    story = followed_cache(path)
    change_number(path, number)
    problem = problem_of_cache(path)
    assert f"it says format {number}" in problem
    head = story.another_head(state=TableState(open_cache(path)))
    head.follow()
    assert head.state.digest() == story.state.digest()
    assert number_in(path.with_name(f"{path.name}.damaged-1")) == number
    head.state.connection.close()
    assert problem_of_cache(path) == ""
    change_number(path, number)
    assert set_aside_if_damaged(path)


def test_the_columns_of_each_format_are_others() -> None:
    seen: list[set[bytes]] = []
    with closing(sqlite3.connect(":memory:")) as made:
        made.executescript(layout.LAYOUT)
        for number in range(1, STATE_FORMAT + 1):
            assert columns_of(made) not in seen, "a disk could make one of the other"
            seen.append(columns_of(made))
            for statement in layout.UPGRADES.get(number, ()):
                made.execute(statement)


def test_a_cache_that_is_no_database_is_set_aside(path: Path) -> None:
    path.write_bytes(b"rubbish" * 1000)
    assert TableState(open_cache(path)).head().number == 0
    assert path.with_name(f"{path.name}.damaged-1").read_bytes() == b"rubbish" * 1000


def test_a_cache_that_is_locked_is_unavailable_and_nothing_was_written(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    story = TableStory()
    head = story.another_head(state=TableState(open_cache(path)))
    head.follow()
    head._retry = Retry(seconds_max=0.0)
    monkeypatch.setattr(proven_state, "BUSY_SECONDS", 0.001)
    with sqlite3.connect(path, isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(UnavailableError, match="busy"):
            story.when_committed(AddFiles(()), head=head)
    other.close()
    assert story.when_committed(AddFiles(()), head=head) == 2


def test_a_full_disk_says_so_and_a_bug_is_a_bug() -> None:
    full = sqlite3.OperationalError("full")
    full.sqlite_errorcode = sqlite3.SQLITE_FULL
    assert translated(full).code() == "storage-full"
    wrong = sqlite3.OperationalError("no such table")
    wrong.sqlite_errorcode = sqlite3.SQLITE_ERROR
    with pytest.raises(AssertionError, match="no such table"):
        translated(wrong)


def test_many_may_open_a_new_file_at_once(path: Path) -> None:
    states: list[TableState] = []
    threads = [
        threading.Thread(target=lambda: states.append(TableState(open_cache(path))))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [state.head().number for state in states] == [0] * 8


WORKER = """
import random, sys
from contextlib import closing
from pathlib import Path
from lakebed.backends.local.transaction_logs import SqliteTransactionLogs
from lakebed.backends.system.clock import SystemClock
from lakebed.model.names import digest_of
from lakebed.statestore.head import TableHead
from lakebed.statestore.table_state.layout import open_cache
from lakebed.statestore.table_state.state import TableState
from lakebed.statestore.log_entries.table_changes import PutPin
from lakebed.statestore.log_entries.transactions import Transaction
root, worker = Path(sys.argv[1]), sys.argv[2]
log = SqliteTransactionLogs(root, SystemClock()).open("t")
state = TableState(open_cache(root / "cache.sqlite"))
head = TableHead(log, state, clock=SystemClock(), rng=random.Random(worker))
head.follow()
for i in range(50):
    id_ = f"{worker}-{i}"
    head.commit(Transaction(id_, digest_of(id_.encode()), 1, 1, (PutPin(id_, 5),)))
"""


def test_processes_share_a_cache_and_a_log(tmp_path: Path) -> None:
    story = TableStory()
    log = SqliteTransactionLogs(tmp_path, SystemClock()).open(TableId("t"))
    ((_, creation),) = story.log.log.read_after(TransactionNumber(0))
    log.append(story.state.head().number, creation)
    workers = [
        subprocess.Popen([sys.executable, "-c", WORKER, str(tmp_path), name]) for name in "abc"
    ]
    assert [worker.wait(60) for worker in workers] == [0, 0, 0]
    fresh = story.another_head(log=log, clock=SystemClock())
    fresh.follow()
    shared = story.another_head(
        log=log, clock=SystemClock(), state=TableState(open_cache(tmp_path / "cache.sqlite"))
    )
    shared.follow()
    assert fresh.state.head().number == 152, "a clock that is ahead of the creation was told"
    assert len(fresh.state.pins()) == 150
    assert shared.state.digest() == fresh.state.digest()


def test_who_opens_while_a_stopped_process_does_waits_for_a_time_and_is_told_which(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = (
        "import sys\nfrom pathlib import Path\nfrom lakebed.statestore.table_state import layout\n"
        "layout._prepared = lambda path: (print('holds', flush=True), sys.stdin.read())\n"
        "layout.open_cache(Path(sys.argv[1]))\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"holds\n"
        holder.send_signal(signal.SIGSTOP)
        monkeypatch.setattr(layout, "BUSY_SECONDS", 0.05)
        with pytest.raises(UnavailableError, match="another process writes to it") as raised:
            open_cache(path)
        assert raised.value.facts["process"] == holder.pid
        holder.kill()
    open_cache(path).close()
