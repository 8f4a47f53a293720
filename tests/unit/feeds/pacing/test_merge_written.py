"""Small files are merged by the feed that writes them, where no schedule does, and nothing that a
merge meets stops the feed."""

import logging
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import lakebed
from lakebed.backends.memory.clock import VirtualClock
from lakebed.bootstrap.app import App
from lakebed.bootstrap.local import open_local
from lakebed.compaction.merge_small_files import LOST_SECONDS, MergeSmallFiles
from lakebed.compaction.run_job import RunCompactionJob
from lakebed.errors import CorruptError, UnavailableError
from lakebed.feeds.pacing.merge_written import MergeWritten
from lakebed.feeds.run_feeds import FeedDone
from lakebed.lake import Lake
from lakebed.model.feeds.held_bytes import MIB, HeldBytes
from lakebed.model.feeds.time_share import TimeShare
from lakebed.statestore.open_table import OpenTable
from lakebed.tasks.failed_work import FIRST_WAIT_SECONDS, FailedTables
from tests.dsl.memory_instance import MemoryInstance
from tests.unit.compaction.small_files import (
    FILES_MAX,
    SCHEMA,
    files_of,
    filled,
    killed,
    leaves_of,
    merging,
)

ROUNDS = 60
ENOUGH = FILES_MAX + 5
"""Rounds after which a leaf without merges is full for sure."""
TEXT = """
[feed.orders]
files = "{folder}/*.log"
decoder = {{ format = "json" }}
[connection.all]
feed = "orders"
table = "orders"
"""
LANDED = """
[feed.orders]
files = "{folder}/*.log"
"""


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def app(tmp_path: Path, clock: VirtualClock) -> Iterator[App]:
    app = open_local(tmp_path / "lake", clock=clock)
    yield app
    app.close()


class Trickle:
    """A feed of a file that grows by a record a round, or by a bad one, too."""

    def __init__(self, app: App, folder: Path, *, text: str = TEXT, bad: str = "") -> None:
        self.lake = Lake(app)
        self._file, self._bad, self._next = folder / "a.log", bad, 0
        self._file.touch()
        settings = {"leaf_files_max": FILES_MAX}
        self.lake.create_table("orders", SCHEMA, settings=settings)
        self._feeds = lakebed.Feeds(self.lake, text.format(folder=folder))

    def round(self) -> FeedDone:
        with self._file.open("a", encoding="utf-8") as file:
            file.write(f'{{"id": {self._next}}}\n{self._bad}')
        self._next += 1
        (done,) = self._feeds.run()
        return done

    def rounds_until_busy(self) -> int:
        for number in range(ENOUGH):
            if self.round().code:
                return number
        return ENOUGH

    def files(self, table: str = "orders") -> int:
        return files_of(self.lake.table(table)._opened)

    def ids(self) -> list[int]:
        return sorted(self.lake.table("orders").query().read_all()["id"].to_pylist())


def test_a_feed_alone_goes_on_with_each_record_once_and_few_files(app: App, tmp_path: Path) -> None:
    trickle = Trickle(app, tmp_path)
    for _ in range(ROUNDS):
        done = trickle.round()
        assert (done.code, done.commits, done.tally.stored) == ("", 1, 1)
        assert trickle.files() <= FILES_MAX // 2
    assert trickle.ids() == list(range(ROUNDS))


def test_without_merges_the_same_feed_waits_for_compaction(
    app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MergeSmallFiles, "run", lambda *_args, **_named: 0)
    assert Trickle(app, tmp_path).rounds_until_busy() == FILES_MAX


def test_the_quarantine_of_a_feed_is_merged_too(app: App, tmp_path: Path) -> None:
    trickle = Trickle(app, tmp_path, bad="none\n")
    trickle.round()
    trickle.lake.table("orders_quarantine").change_settings(leaf_files_max=FILES_MAX)
    assert trickle.rounds_until_busy() == ENOUGH
    assert trickle.files("orders_quarantine") <= FILES_MAX // 2
    assert trickle.lake.table("orders_quarantine").count() == ENOUGH + 1


def test_the_landing_table_of_a_feed_is_merged_too(app: App, tmp_path: Path) -> None:
    trickle = Trickle(app, tmp_path, text=LANDED)
    trickle.lake.table("orders_landing").change_settings(leaf_files_max=FILES_MAX)
    assert trickle.rounds_until_busy() == ENOUGH
    assert trickle.lake.table("orders_landing").count() == ENOUGH


def test_a_leaf_that_was_full_before_is_merged_until_it_takes_rows(
    app: App, tmp_path: Path
) -> None:
    trickle = Trickle(app, tmp_path)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(MergeSmallFiles, "run", lambda *_args, **_named: 0)
        assert trickle.rounds_until_busy() == FILES_MAX
    assert trickle.round().code == ""
    assert trickle.ids() == list(range(FILES_MAX + 2))


def test_in_an_instance_a_feed_merges_nothing(tmp_path: Path) -> None:
    (tmp_path / "instance").mkdir()
    (tmp_path / "files").mkdir()
    instance = MemoryInstance(tmp_path / "instance")
    trickle = Trickle(instance.lake, tmp_path / "files")
    assert trickle.rounds_until_busy() == FILES_MAX


def test_a_merge_that_fails_is_said_and_tried_again_later_and_the_feed_goes_on(
    app: App,
    tmp_path: Path,
    clock: VirtualClock,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    trickle, tries = Trickle(app, tmp_path), list[float]()

    def fail(*_args: object, **_named: object) -> bool:
        tries.append(clock.monotonic())
        raise UnavailableError("the store does not answer", hint="try again")

    with monkeypatch.context() as patched, caplog.at_level(logging.INFO, logger="lakebed"):
        patched.setattr(RunCompactionJob, "run", fail)
        for _ in range(FILES_MAX // 2):
            assert trickle.round().code == ""
            clock.advance(1)
    assert len(tries) == 1
    trickle.lake.run(kinds=["snapshots"])  # raises nothing: it was no work of its own that failed
    (said,) = [r.message for r in caplog.records if r.message.startswith("table_failed")]
    assert "work=compaction code=unavailable" in said
    clock.advance(FIRST_WAIT_SECONDS)
    for _ in range(ENOUGH):
        assert trickle.round().code == ""
        clock.advance(LOST_SECONDS)
    assert trickle.files() <= FILES_MAX // 2


@pytest.mark.parametrize("error", [CorruptError("damaged", hint=None), ValueError("a bug")])
def test_whatever_a_merge_raises_stops_no_round(
    app: App, clock: VirtualClock, error: Exception
) -> None:
    table, calls, held = filled(app, 1), list[int](), HeldBytes()

    class Failing:
        def run(self, _table: OpenTable, *, bytes_max: int, seconds: float) -> int:
            calls.append(bytes_max)
            raise error

    failed = FailedTables(clock)
    merge = MergeWritten(Failing(), failed=failed, held=held, share=TimeShare(), clock=clock)
    merge.run(table)
    merge.run(table)
    assert len(calls) == 1
    assert [one.work for one in failed.of([table.id])] == ["compaction"]
    clock.advance(FIRST_WAIT_SECONDS)
    merge.run(table)
    assert len(calls) == 2


def test_a_process_merges_for_a_quarter_of_its_time_at_most(app: App, clock: VirtualClock) -> None:
    table, begun = filled(app, 1), list[float]()

    class Slow:
        def run(self, _table: OpenTable, *, bytes_max: int, seconds: float) -> int:
            begun.append(clock.monotonic())
            clock.advance(2 * seconds)
            return 1

    share, start = TimeShare(), clock.monotonic()
    pipelines = [
        MergeWritten(Slow(), failed=FailedTables(clock), held=HeldBytes(), share=share, clock=clock)
        for _ in range(3)
    ]
    while clock.monotonic() < start + 80:
        for one in pipelines:
            one.run(table)
        clock.advance(0.5)
    assert len(begun) == 10


def test_what_is_merged_at_once_fits_into_the_memory_beside_a_round_of_any_size(
    app: App, clock: VirtualClock
) -> None:
    table, sizes, held = filled(app, 1), list[int](), HeldBytes(64 * MIB)

    class Counted:
        def run(self, _table: OpenTable, *, bytes_max: int, seconds: float) -> int:
            sizes.append(bytes_max // MIB)
            return 0

    failed, share = FailedTables(clock), TimeShare()
    merge = MergeWritten(Counted(), failed=failed, held=held, share=share, clock=clock)
    for size in (0, 20, 60, 64):
        held.hold("a pipeline", size * MIB)
        merge.run(table)
    assert sizes == [38] * 4


def test_a_feed_that_is_behind_merges_what_its_largest_rounds_write(
    app: App, clock: VirtualClock
) -> None:
    table = Lake(app).create_table("t", SCHEMA, settings={"leaf_files_max": FILES_MAX})
    rng = np.random.default_rng(1)
    for _ in range(FILES_MAX // 4):
        table.ingest(pa.table({"id": rng.integers(0, 1 << 62, 1_000_000)}))
    (leaf,), held = leaves_of(table._opened), HeldBytes()
    assert leaf.size / leaf.files > 4 * MIB
    held.hold("a pipeline", held.bytes_max)
    MergeWritten(
        merging(app), failed=FailedTables(clock), held=held, share=TimeShare(), clock=clock
    ).run(table._opened)
    assert files_of(table._opened) == 1


def test_a_table_that_is_offline_gets_no_jobs_and_the_feed_waits(app: App, tmp_path: Path) -> None:
    trickle = Trickle(app, tmp_path)
    trickle.lake.set_online("orders", online=False)
    assert trickle.rounds_until_busy() == FILES_MAX
    trickle.lake.set_online("orders", online=True)
    assert trickle.round().code == ""


def test_a_job_whose_process_died_is_run_however_many_records_are_held_by_then(
    app: App, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = filled(app, FILES_MAX // 4)
    held = HeldBytes(2 * sum(leaf.size for leaf in leaves_of(table)))
    failed, share = FailedTables(clock), TimeShare()
    merge = MergeWritten(merging(app), failed=failed, held=held, share=share, clock=clock)
    with monkeypatch.context() as patched:
        patched.setattr(type(app.files), "merge_into_file", killed)
        with pytest.raises(KeyboardInterrupt):
            merge.run(table)
    held.hold("a pipeline", held.bytes_max)
    clock.advance(LOST_SECONDS)
    merge.run(table)
    assert files_of(table) == 1
