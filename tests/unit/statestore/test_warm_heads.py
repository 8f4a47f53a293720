"""States that stay warm on the local disk, within a bound of bytes."""

import errno
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lakebed.backends.memory import MemoryObjectStore, MemoryTransactionLogs, VirtualClock
from lakebed.config.functions import full_disk_hint
from lakebed.errors import InvalidError, StorageFullError
from lakebed.model.names import (
    CommitId,
    Generation,
    TableId,
    TransactionNumber,
    digest_of,
)
from lakebed.statestore.log_entries.table_changes import ChangeSettings, create_table
from lakebed.statestore.log_entries.transactions import Transaction
from lakebed.statestore.snapshots import Snapshots
from lakebed.statestore.table_state.closable_state import StateLimits
from lakebed.statestore.warm_heads import WarmHeads
from tests.dsl import TableStory
from tests.dsl.table_story import SCHEMA


class Tables:
    """Many tables over one set of logs, with states on disk."""

    def __init__(self, folder: Path, bytes_max: int | None) -> None:
        self.clock = VirtualClock()
        self.logs = MemoryTransactionLogs(self.clock)
        (folder / "cache").mkdir()
        self.folder = folder
        self.objects = MemoryObjectStore(self.clock)
        self.story = TableStory()
        self.heads = self.warm(bytes_max)

    def warm(self, bytes_max: int | None, *, open_max: int = 64) -> WarmHeads:
        return WarmHeads(
            folder=self.folder / "cache",
            scratch=self.folder,
            logs=self.logs,
            objects=self.objects,
            clock=self.clock,
            rng=random.Random(1),
            limits=StateLimits(open_max, bytes_max=bytes_max, full_hint=full_disk_hint(512)),
        )

    def given_tables(self, *names: str) -> None:
        for name in names:
            creation = self.story.transaction(create_table(SCHEMA, {}, ()), base=0, generation=0)
            self.heads(TableId(name)).commit(creation)

    def cached(self) -> list[str]:
        return sorted(path.stem for path in (self.folder / "cache").glob("*.sqlite"))

    def open(self) -> list[str]:
        """States that are open: SQLite deletes their shared memory when they are closed."""
        return sorted(path.name[:-11] for path in (self.folder / "cache").glob("*.sqlite-shm"))

    def bytes(self) -> int:
        return sum(path.stat().st_size for path in (self.folder / "cache").iterdir())


def test_states_stay_warm_until_others_need_the_room(tmp_path: Path) -> None:
    tables = Tables(tmp_path, None)
    tables.given_tables("a", "b", "c")
    size = tables.bytes() // 3
    tables.heads.close()
    warm = tables.warm(2 * size)
    for name in ("a", "b", "a", "c", "a"):
        warm(TableId(name)).follow()
    assert tables.cached() == ["a", "c"]
    assert tables.bytes() <= 2 * size
    kept = warm(TableId("a"))
    assert warm(TableId("a")) is kept
    head = warm(TableId("b"))
    head.follow()
    assert head.state.head().number == 1
    assert tables.cached() == ["a", "b"]
    warm.close()


def test_what_a_former_process_left_counts(tmp_path: Path) -> None:
    tables = Tables(tmp_path, None)
    tables.given_tables("a", "b", "c")
    tables.heads.close()
    warm = tables.warm(1)
    warm(TableId("b")).follow()
    assert tables.cached() == ["b"]
    warm.close()


def test_one_table_that_is_larger_than_the_bound_is_served(tmp_path: Path) -> None:
    tables = Tables(tmp_path, 1)
    tables.given_tables("a", "b")
    assert tables.cached() == ["b"]
    assert tables.heads(TableId("a")).state.head().number == 0
    tables.heads(TableId("a")).follow()
    assert tables.heads(TableId("a")).state.head().number == 1
    tables.heads.close()


def test_few_states_are_open_and_all_stay_on_the_disk(tmp_path: Path) -> None:
    tables = Tables(tmp_path, None)
    tables.heads = tables.warm(None, open_max=2)
    tables.given_tables("a", "b", "c", "d")
    assert tables.cached() == ["a", "b", "c", "d"]
    assert tables.open() == ["c", "d"]
    head = tables.heads(TableId("a"))
    tables.heads(TableId("b"))
    tables.heads(TableId("c"))
    assert tables.open() == ["b", "c"]
    with head.reading() as state:  # in somebody's hands all the while
        assert state.head().number == 1
    assert tables.open() == ["a", "c"]
    tables.heads.close()
    assert tables.open() == []


def test_a_table_has_one_head_as_long_as_anybody_has_it(tmp_path: Path) -> None:
    tables = Tables(tmp_path, None)
    tables.heads = tables.warm(None, open_max=1)
    tables.given_tables("a", "b")
    head = tables.heads(TableId("a"))
    tables.heads(TableId("b"))
    assert tables.heads(TableId("a")) is head


def test_threads_that_share_few_open_states_lose_nothing(tmp_path: Path) -> None:
    tables = Tables(tmp_path, None)
    tables.heads = tables.warm(None, open_max=2)
    names = [f"t{number}" for number in range(6)]
    tables.given_tables(*names)

    def work(seed: int) -> None:
        rng = random.Random(seed)
        for turn in range(20):
            head = tables.heads(TableId(rng.choice(names)))
            id_ = CommitId(f"{seed}-{turn}")
            change = ChangeSettings({"leaf_rows_max": 1_000 + turn})
            digest = digest_of(id_.encode())
            number = head.commit(
                Transaction(id_, digest, TransactionNumber(1), Generation(1), (change,))
            )
            with head.reading() as state:
                assert state.head().number >= number

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(work, range(4))) == [None] * 4
    numbers = [tables.heads(TableId(name)).state.head().number for name in names]
    assert sum(numbers) == len(names) + 4 * 20
    assert len(tables.open()) <= 2


def test_closed_heads_open_nothing_any_more(tmp_path: Path) -> None:
    tables = Tables(tmp_path, None)
    tables.given_tables("a")
    head = tables.heads(TableId("a"))
    tables.heads.close()
    with pytest.raises(InvalidError, match="the lake was closed"):
        head.follow()
    assert tables.open() == []


class SmallDisk:
    """A disk with room for one snapshot, when no state is beside it. Changes what unpacks them."""

    def __init__(self, tables: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
        self.room_for_one = True
        real = Snapshots._pieces

        def pieces(snapshots: Snapshots, path: str) -> Iterator[bytes]:
            first, *_ = real(snapshots, path)
            yield first[:10]
            if tables.cached() or not self.room_for_one:
                raise OSError(errno.ENOSPC, "No space left on device")
            yield first[10:]

        monkeypatch.setattr(Snapshots, "_pieces", pieces)


@pytest.fixture
def tables(tmp_path: Path) -> Tables:
    """Two tables with snapshots and no states."""
    tables = Tables(tmp_path, None)
    tables.given_tables("a", "b")
    for name in ("a", "b"):
        with tables.heads(TableId(name)).reading() as state:
            tables.heads.snapshots(TableId(name)).write(state)
        tables.heads.rebuild(TableId(name))
    tables.heads.close()
    for path in (tmp_path / "cache").iterdir():
        path.unlink()
    return tables


def test_a_state_that_does_not_fit_beside_others_gets_their_room(
    tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    SmallDisk(tables, monkeypatch)
    warm = tables.warm(1 << 30)
    assert warm(TableId("a")).state.head().number == 1
    assert warm(TableId("b")).state.head().number == 1
    assert tables.cached() == ["b"]
    assert warm(TableId("a")).state.head().number == 1
    warm.close()


def test_a_state_that_does_not_fit_at_all_is_refused_with_the_setting_to_raise(
    tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = SmallDisk(tables, monkeypatch)
    disk.room_for_one = False
    warm = tables.warm(1 << 30)
    with pytest.raises(StorageFullError, match=r"table=a.*larger `function_disk_mib`"):
        warm(TableId("a"))
    assert [path.name for path in (tables.folder / "cache").iterdir()] == ["a.sqlite.lock"]
    disk.room_for_one = True
    assert warm(TableId("a")).state.head().number == 1
    warm.close()


def test_a_state_that_outgrows_its_disk_is_refused_with_the_setting_to_raise(
    tables: Tables,
) -> None:
    warm = tables.warm(1 << 30)
    head = warm(TableId("a"))
    (pages,) = head.state.connection.execute("PRAGMA page_count").fetchone()
    head.state.connection.execute(f"PRAGMA max_page_count={pages}")
    commits = [
        Transaction(
            CommitId(f"{number:0100d}"),
            digest_of(b"%d" % number),
            TransactionNumber(1),
            Generation(1),
            (ChangeSettings({"leaf_rows_max": 1_000 + number}),),
        )
        for number in range(1_000)
    ]
    answers = head.commit_group(commits)
    assert {type(answer) for answer in answers} == {StorageFullError}
    assert "deploy with a larger `function_disk_mib`" in str(answers[0])
    warm.close()
