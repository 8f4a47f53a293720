"""A state proves itself: rows that a disk changed or lost are noticed, it is made anew (H37)."""

import logging
import random
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

import pytest

from lakebed.backends.memory import MemoryObjectStore
from lakebed.errors import CacheDamagedError
from lakebed.model.feeds.tallies import Tally
from lakebed.model.feeds.windows import SplitTime, WindowCount, WindowRules
from lakebed.model.names import ConnectionId, Micros, PartitionId, TableId, TransactionNumber
from lakebed.observe import events
from lakebed.ports.transaction_log import TransactionLog
from lakebed.statestore.head import TableHead
from lakebed.statestore.log_entries.feed_changes import Count, Define, RecordGap, TakeItems
from lakebed.statestore.log_entries.file_changes import AddFiles
from lakebed.statestore.log_entries.table_changes import PutPin
from lakebed.statestore.log_entries.version_changes import BeginFollowing, PutTag, RaiseHorizon
from lakebed.statestore.log_entries.window_changes import Advance
from lakebed.statestore.snapshots import Snapshots
from lakebed.statestore.table_state import sums
from lakebed.statestore.table_state.closable_state import StateLimits
from lakebed.statestore.table_state.sums import COLUMNS, sum_of
from lakebed.statestore.warm_heads import WarmHeads
from tests.dsl import TableStory
from tests.dsl.table_story import next_position

TABLE = TableId("t")
CHANGED = {
    "head": "generation = generation + 1",
    "commits": "number = number + 1",
    "entry_times": "at = at + 1",
    "partitions": "rows_unsplittable = 7",
    "file_references": "rows = rows + 1",
    "jobs": "at = at + 1",
    "garbage": "size = size + 1",
    "pins": "number = 0",
    "positions": "owner = owner + 1",
    "last_entry": "checksum = x'00'",
    "connections": "version = version + 1",
    "tallies": "read = read + 1",
    "items": "number = number + 1",
    "gaps": "reason = 'none'",
    "errors_in_row": "errors = errors + 1",
    "watermarks": "time = time + 1",
    "progress": "said = since + 1",
    "windows": "rows = rows + 1",
    "horizon": "number = number + 1",
    "tags": "number = number + 1",
    "followers": "number = number + 1",
}
FEED = ConnectionId("feed")


class OneLog:
    """The log of a story, as a store of logs."""

    def __init__(self, log: TransactionLog) -> None:
        self.log = log

    def open(self, _: TableId) -> TransactionLog:
        return self.log

    def tables(self) -> list[TableId]:
        return [TABLE]


class Cached:
    """A table with something of everything, and heads whose states are in one folder of caches."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.story = story = TableStory("L | m | R")
        story.given_files("L", a=1, b=2, c=3)
        story.given_files("R", d=4, e=5)
        story.when_claimed("one", "L", "a", "b")
        story.when_replaced("one", "L", "a", "b", f=3)
        story.when_claimed("two", "R", "d", "e")
        filled = (
            PutPin("p", Micros(1 << 60)),
            Define(FEED, 1),
            Count(FEED, 1, "0", Tally(read=2, filtered=1, stored=1), 1),
            AddFiles(story.new_files("L", w=1)),
            Advance(
                *(FEED, 1, WindowRules(60)),
                (SplitTime("0", Micros(59_000_000), caught_up=True),),
                (WindowCount(Micros(0), 1),),
            ),
            TakeItems(FEED, (bytes(16),)),
            RecordGap(FEED, 1, "0", b"1", b"2", "gone"),
            RaiseHorizon(TransactionNumber(0)),
            PutTag("first"),
            BeginFollowing("mirror", None, Micros(1 << 60)),
        )
        position = next_position(f"{FEED}/0", None, 2, owner=2)
        story.head.commit(story.transaction(*filled, positions=[position]))
        self.warm = self.opened()

    def opened(self, bytes_max: int | None = None) -> WarmHeads:
        return WarmHeads(
            folder=self.folder,
            scratch=self.folder,
            logs=OneLog(self.story.log),
            objects=MemoryObjectStore(self.story.clock),
            clock=self.story.clock,
            rng=random.Random(1),
            limits=StateLimits(bytes_max=bytes_max),
        )

    @property
    def head(self) -> TableHead:
        return self.warm(TABLE)

    @property
    def path(self) -> Path:
        return self.warm.cache_path(TABLE)

    def aside(self) -> list[str]:
        return sorted(path.name for path in self.folder.glob("*.damaged-*"))

    def damage(self, statement: str) -> None:
        """Change rows behind the back of the sums, as a disk does."""
        with closing(sqlite3.connect(self.path)) as connection, connection:
            assert connection.execute(statement).rowcount, "nothing was damaged"

    def check_whole(self) -> None:
        with self.head.reading() as state:
            assert state.digest() == self.story.state.digest()
            state.prove()


@pytest.fixture
def cached(tmp_path: Path) -> Cached:
    made = Cached(tmp_path)
    made.check_whole()
    return made


def test_all_columns_of_all_tables_are_summed(cached: Cached) -> None:
    with closing(sqlite3.connect(cached.path)) as connection:
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        names = {name for (name,) in tables} - {"row_sums", "partition_sums"}
        assert names == set(COLUMNS) == set(CHANGED)
        for table, columns in COLUMNS.items():
            found = connection.execute("SELECT name FROM pragma_table_info(?)", (table,))
            assert [name for (name,) in found] == columns.split(), table
            assert connection.execute(f"SELECT 1 FROM {table}").fetchone(), f"{table} is tried"


@pytest.mark.parametrize("table", CHANGED)
@pytest.mark.parametrize("what", ["changed", "lost", "doubled"])
@pytest.mark.parametrize("when", ["closed", "open"])
def test_rows_that_nobody_wrote_are_noticed(
    cached: Cached, table: str, what: str, when: str
) -> None:
    if when == "closed":
        cached.warm.close()
        cached.warm = cached.opened()
    statement = f"UPDATE {table} SET {CHANGED[table]}"
    if what == "lost":
        statement = f"DELETE FROM {table}"
    elif what == "doubled":
        first, *rest = COLUMNS[table].split()
        statement = f"INSERT INTO {table} SELECT {first} || 'x', {', '.join(rest)} FROM {table}"
        if table in {
            "head",
            "partitions",
            "jobs",
            "entry_times",
            "last_entry",
            "connections",
            "watermarks",
            "horizon",
        }:
            pytest.skip("one row at most, or its key is a number")
    cached.damage(statement)
    cached.check_whole()
    assert cached.aside() == ["t.sqlite.damaged-1"]


@pytest.mark.parametrize("statement", [
    "DELETE FROM row_sums WHERE name = 'pins'",
    "UPDATE row_sums SET total = total + 1 WHERE name = 'commits'",
    "UPDATE row_sums SET rows = 0 WHERE name = 'garbage'",
    "DELETE FROM partition_sums",
    "UPDATE partition_sums SET total = total - 1 WHERE files > 0",
    "DROP TABLE commits",
])  # fmt: skip
def test_damaged_sums_and_tables_that_are_gone_are_noticed(cached: Cached, statement: str) -> None:
    with closing(sqlite3.connect(cached.path)) as connection, connection:
        connection.execute(statement)
    cached.check_whole()
    assert cached.aside() == ["t.sqlite.damaged-1"]


def test_each_zeroed_page_of_a_cache_is_noticed_by_who_opens_it(cached: Cached) -> None:
    cached.warm.close()
    whole = cached.path.read_bytes()
    for page in range(0, len(whole), 4_096):
        cached.path.write_bytes(whole[:page] + bytes(4_096) + whole[page + 4_096 :])
        cached.warm = cached.opened()
        cached.check_whole()
        cached.warm.close()


def test_log_time_is_told_of_a_proven_state(cached: Cached) -> None:
    """Story: the page with what clocks said is zeroed; who asks for log time first meets it."""
    cached.story.clock.advance(3 * 86_400)
    wanted = cached.story.head.log_time()
    cached.warm.close()
    whole = cached.path.read_bytes()
    for page in range(0, len(whole), 4_096):
        cached.path.write_bytes(whole[:page] + bytes(4_096) + whole[page + 4_096 :])
        cached.warm = cached.opened()
        assert cached.head.log_time() == wanted
        cached.warm.close()


def test_an_event_tells_of_a_cache_that_is_set_aside(
    cached: Cached, caplog: pytest.LogCaptureFixture
) -> None:
    cached.damage("UPDATE commits SET number = number + 1")
    with caplog.at_level(logging.INFO, logger="lakebed"):
        cached.check_whole()
    (told,) = [r for r in caplog.records if getattr(r, "event", "") == events.CACHE_SET_ASIDE]
    assert vars(told)["facts"] == {"cache": "t.sqlite", "problem": "where commits"}


def test_two_damaged_caches_are_kept_at_the_most(cached: Cached) -> None:
    for number in range(4):
        cached.damage(f"UPDATE pins SET until = {number}")
        cached.check_whole()
    assert cached.aside() == ["t.sqlite.damaged-1", "t.sqlite.damaged-2"]
    with closing(sqlite3.connect(cached.folder / "t.sqlite.damaged-1")) as newest:
        assert newest.execute("SELECT until FROM pins").fetchone() == (3,)


def test_what_has_a_bound_of_bytes_keeps_no_damaged_cache(cached: Cached) -> None:
    cached.warm.close()
    cached.warm = cached.opened(bytes_max=1 << 20)
    cached.check_whole()
    cached.damage("UPDATE pins SET until = 1")
    cached.check_whole()
    assert cached.aside() == []


def test_who_shares_a_damaged_cache_goes_on_with_the_one_that_was_made_anew(
    cached: Cached,
) -> None:
    other = cached.opened()
    other(TABLE).follow()
    cached.damage("DELETE FROM file_references")
    cached.check_whole()
    cached.story.given_files("L", g=1)
    with other(TABLE).reading() as state:
        assert state.digest() == cached.story.state.digest()
    other.close()
    cached.story.given_files("R", h=1)
    cached.check_whole()
    assert cached.aside() == ["t.sqlite.damaged-1"]


def test_a_commit_rests_on_a_proven_state(cached: Cached) -> None:
    """Story: a page with ids of commits is lost; a request that comes again is done again."""
    again = cached.story.transaction(AddFiles(cached.story.new_files("L", x=1)))
    number = cached.story.head.commit(again)
    cached.check_whole()
    cached.damage("DELETE FROM commits")
    assert cached.head.commit(again) == number
    assert len(list(cached.story.log.log.read_after(number))) == 0


def read(head: TableHead, leaves: Iterable[PartitionId]) -> None:
    """Read what queries and writers read of leaves, and of the tree."""
    with head.reading() as state:
        for leaf in leaves:
            state.partition(leaf)
            state.references(leaf)
        state.tree()


class TestOfLargeStates:
    """Only what is read is proven of a state with many rows."""

    @pytest.fixture(autouse=True)
    def _all_are_large(self, monkeypatch: pytest.MonkeyPatch, cached: Cached) -> None:
        monkeypatch.setattr(sums, "PROVEN_ROWS_MAX", 0)
        cached.warm.close()
        cached.warm = cached.opened()
        cached.check_whole()

    @pytest.mark.parametrize("statement", [
        "DELETE FROM file_references WHERE rows = 4",
        "UPDATE file_references SET rows = 9 WHERE rows = 4",
        "UPDATE partitions SET left = NULL, right = NULL",
        "UPDATE partitions SET point = x'00' WHERE left IS NOT NULL",
        "DELETE FROM partitions WHERE left IS NULL",
        "DELETE FROM jobs",
    ])  # fmt: skip
    def test_a_query_verifies_the_leaves_that_it_reads(
        self, cached: Cached, statement: str
    ) -> None:
        cached.damage(statement)
        leaves = cached.story.partitions.values()
        with pytest.raises(CacheDamagedError):
            read(cached.head, leaves)
        with cached.head.reading() as state:
            found = [state.references(leaf) for leaf in leaves]
        assert found == [cached.story.state.references(leaf) for leaf in leaves]

    def test_sums_of_partitions_that_are_outdated_are_noticed(self, cached: Cached) -> None:
        """Story: a damaged write-ahead file leaves some pages as they were before a commit."""
        with closing(sqlite3.connect(cached.path)) as connection, connection:
            connection.execute("DELETE FROM file_references WHERE rows = 4")
            rows = connection.execute("SELECT * FROM file_references ORDER BY partition").fetchall()
            last = [row for row in rows if row[0] == rows[-1][0]]
            connection.execute(
                "UPDATE partition_sums SET files = ?, total = ? WHERE partition = ?",
                (*sum_of(last), last[0][0]),
            )
        cached.check_whole()
        assert cached.aside() == ["t.sqlite.damaged-1"]

    def test_ids_of_commits_are_proven_before_the_first_commit(self, cached: Cached) -> None:
        cached.warm.close()
        cached.warm = cached.opened()
        again = cached.story.transaction(AddFiles(cached.story.new_files("L", x=1)))
        number = cached.story.head.commit(again)
        cached.damage("DELETE FROM commits")
        assert cached.head.commit(again) == number

    def test_no_snapshot_is_written_of_what_does_not_prove_itself(self, cached: Cached) -> None:
        objects = MemoryObjectStore(cached.story.clock)
        snapshots = Snapshots(TABLE, objects, scratch=cached.folder)
        cached.damage("DELETE FROM garbage")
        with cached.head.reading() as state, pytest.raises(CacheDamagedError):
            snapshots.write(state)
        assert snapshots.newest_first() == []

    def test_a_claim_is_read_without_an_index_that_may_be_damaged(self, cached: Cached) -> None:
        cached.warm.close()
        cached.warm = cached.opened()
        with closing(sqlite3.connect(cached.path)) as connection, connection:
            connection.execute("PRAGMA writable_schema=ON")
            connection.execute("DELETE FROM sqlite_master WHERE name = 'references_by_job'")
        with cached.head.reading() as state:
            held = {r.file.name for r in state.claimed("two")}
        assert held == {cached.story.file("d"), cached.story.file("e")}


def test_a_state_stays_proven_through_its_own_writes(cached: Cached) -> None:
    cached.story.when_split("L", "A | d | B")
    cached.story.when_given_up("two")
    cached.story.when_cleared("X | t | Y")
    cached.check_whole()
    cached.story.given_files("X", y=1)
    cached.check_whole()
    assert cached.story.state.head().number == TransactionNumber(11)
    assert cached.aside() == []
