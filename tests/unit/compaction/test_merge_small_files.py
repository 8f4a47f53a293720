"""Small files are merged where they are written: by jobs that are claimed and run in one go, and
that outlive their process, a lost answer and a failure."""

import random
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest

from lakebed.backends.memory.clock import VirtualClock
from lakebed.bootstrap.app import App
from lakebed.bootstrap.local import open_local
from lakebed.compaction import merge_small_files
from lakebed.compaction.merge_small_files import LOST_SECONDS, RUNS_MAX
from lakebed.compaction.run_job import RunCompactionJob
from lakebed.errors import CorruptError, UnavailableError, UnknownOutcomeError
from lakebed.lake import Lake
from lakebed.model.feeds.held_bytes import MIB
from lakebed.statestore.head import TableHead
from lakebed.statestore.log_entries.transactions import Transaction
from lakebed.statestore.open_table import OpenTable
from lakebed.statestore.table_state import file_parts
from lakebed.statestore.table_state.state import CompactionJob, TableState
from tests.unit.compaction.small_files import (
    FILES_MAX,
    SCHEMA,
    files_of,
    filled,
    killed,
    leaves_of,
    merging,
)


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def app(tmp_path: Path, clock: VirtualClock) -> Iterator[App]:
    app = open_local(tmp_path / "lake", clock=clock)
    yield app
    app.close()


def jobs_of(table: OpenTable) -> list[CompactionJob]:
    with table.head.reading() as state:
        return state.jobs()


def test_no_other_job_is_begun_when_its_time_is_over(app: App) -> None:
    table = filled(app, FILES_MAX)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(merge_small_files, "_fitting", lambda files, *_: files[:2])
        assert merging(app).run(table, bytes_max=MIB, seconds=0) == 1
    assert files_of(table) == FILES_MAX - 1


def test_a_job_whose_process_died_is_run_by_the_next_one_that_looks(
    app: App, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = filled(app, FILES_MAX // 4)

    with monkeypatch.context() as patched:
        patched.setattr(RunCompactionJob, "run", killed)
        with pytest.raises(KeyboardInterrupt):
            merging(app).run(table, bytes_max=MIB, seconds=1)
    assert merging(app).run(table, bytes_max=MIB, seconds=1) == 0, "it may be at work elsewhere"
    clock.advance(LOST_SECONDS)
    assert merging(app).run(table, bytes_max=MIB, seconds=1) == 1
    assert files_of(table) == 1


def test_a_job_that_was_rejected_is_left_to_who_lifts_that(
    app: App, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, merge = filled(app, FILES_MAX // 4), merging(app)
    with monkeypatch.context() as patched:
        damaged = CorruptError("damaged", hint=None)
        patched.setattr(type(app.files), "merge_into_file", lambda *_a, **_n: _raise(damaged))
        assert merge.run(table, bytes_max=MIB, seconds=1) == 0
    clock.advance(2 * LOST_SECONDS)
    assert merge.run(table, bytes_max=MIB, seconds=1) == 0
    assert files_of(table) == FILES_MAX // 4


def _raise(error: Exception) -> None:
    raise error


def test_a_job_has_so_many_bytes_at_most_and_larger_files_are_left(app: App) -> None:
    table = filled(app, FILES_MAX // 2)
    (leaf,) = leaves_of(table)
    each = leaf.size // leaf.files
    assert merging(app).run(table, bytes_max=each, seconds=0) == 0
    assert merging(app).run(table, bytes_max=3 * each + each // 2, seconds=0) == 1
    assert files_of(table) == FILES_MAX // 2 - 2


def test_a_large_file_keeps_no_smaller_ones_behind_it_from_being_merged(app: App) -> None:
    settings = {"leaf_files_max": FILES_MAX, "compaction_strategy": "basic", "job_files_max": 4}
    table = Lake(app).create_table("t", SCHEMA, settings=settings)
    ids = random.Random(1).sample(range(1 << 60), 2_000)
    table.ingest(pa.table({"id": pa.array(ids, pa.int64())}))
    large = sum(leaf.size for leaf in leaves_of(table._opened))
    for number in range(5):
        table.ingest(pa.table({"id": pa.array([number], pa.int64())}))
    assert merging(app).run(table._opened, bytes_max=large, seconds=0) == 1
    assert files_of(table._opened) == 3


def test_a_strategy_of_the_user_is_not_passed_over(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = filled(app, FILES_MAX // 2)
    monkeypatch.setattr(merge_small_files, "OUR_STRATEGIES", ())
    assert merging(app).run(table, bytes_max=MIB, seconds=1) == 0


def test_a_leaf_with_few_files_is_left_as_it_is(app: App) -> None:
    table = filled(app, FILES_MAX // 4 - 1)
    assert merging(app).run(table, bytes_max=MIB, seconds=1) == 0


@pytest.mark.parametrize("growth", [1, 2])
def test_a_job_has_as_many_files_as_a_job_may_have(app: App, growth: int) -> None:
    settings = {"leaf_files_max": FILES_MAX, "job_files_max": 4}
    table = Lake(app).create_table("t", SCHEMA, settings=settings)
    for number in range(FILES_MAX // 2):  # where each is twice as large, no ratio holds
        table.ingest(pa.table({"id": pa.array(range(growth**number), pa.int64())}))
    assert merging(app).run(table._opened, bytes_max=MIB, seconds=0) == 1
    assert files_of(table._opened) == FILES_MAX // 2 - 3


@pytest.mark.parametrize("times", [2, RUNS_MAX - 1])
def test_a_job_whose_process_dies_again_is_done_by_who_does_not(
    app: App, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    table = filled(app, FILES_MAX // 4)
    with monkeypatch.context() as patched:
        patched.setattr(type(app.files), "merge_into_file", killed)
        for _ in range(times):
            with pytest.raises(KeyboardInterrupt):
                merging(app).run(table, bytes_max=MIB, seconds=1)
            clock.advance(LOST_SECONDS)
    assert merging(app).run(table, bytes_max=MIB, seconds=1) == 1
    assert files_of(table) == 1
    assert not jobs_of(table)


@pytest.mark.parametrize(
    ("end", "reason"), [(KeyboardInterrupt(), "out-of-memory: "), (ValueError("odd"), "bug: ")]
)
def test_a_job_that_ends_each_process_is_rejected_and_run_no_more(
    app: App,
    clock: VirtualClock,
    monkeypatch: pytest.MonkeyPatch,
    end: BaseException,
    reason: str,
) -> None:
    table, runs = filled(app, FILES_MAX // 4), list[int]()

    def ended(*_args: object, **_named: object) -> None:
        runs.append(1)
        raise end

    monkeypatch.setattr(type(app.files), "merge_into_file", ended)
    for _ in range(RUNS_MAX + 3):
        with suppress(type(end)):
            merging(app).run(table, bytes_max=MIB, seconds=1)
        clock.advance(LOST_SECONDS)
    assert len(runs) == RUNS_MAX
    (job,) = jobs_of(table)
    last = app.tracker.last(table.id, job.id)
    assert last is not None
    assert (last.event, last.reason.startswith(reason), bool(last.basis)) == (
        "rejected",
        True,
        True,
    )


def test_a_job_that_fails_frees_its_files_at_once(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = filled(app, FILES_MAX // 4)
    busy = UnavailableError("the store does not answer", hint="try again")
    with monkeypatch.context() as patched:
        patched.setattr(type(app.files), "merge_into_file", lambda *_a, **_n: _raise(busy))
        with pytest.raises(UnavailableError):
            merging(app).run(table, bytes_max=MIB, seconds=1)
    assert not jobs_of(table)
    assert merging(app).run(table, bytes_max=MIB, seconds=1) == 1


@pytest.mark.parametrize("commit", [1, 2])
@pytest.mark.parametrize("lands", [True, False])
def test_a_lost_answer_to_a_claim_or_a_merge_loses_no_row_and_no_file_of_the_leaf(
    app: App, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch, lands: bool, commit: int
) -> None:
    table, commit_surely, commits = filled(app, FILES_MAX // 4), TableHead.commit, list[int]()

    def unanswered(head: TableHead, transaction: Transaction) -> object:
        commits.append(1)
        number = commit_surely(head, transaction) if lands or len(commits) < commit else None
        if len(commits) == commit:
            raise UnknownOutcomeError("no answer came", hint="try again")
        return number

    with monkeypatch.context() as patched:
        patched.setattr(TableHead, "commit", unanswered)
        with pytest.raises(UnknownOutcomeError):
            merging(app).run(table, bytes_max=MIB, seconds=1)
    assert len(commits) == commit, "nothing is released"
    for _ in range(2):
        merging(app).run(table, bytes_max=MIB, seconds=1)
        clock.advance(LOST_SECONDS)
    assert (files_of(table), jobs_of(table)) == (1, [])
    assert Lake(app).table("t").count() == FILES_MAX // 4


def test_a_table_that_is_offline_gets_no_job_and_one_that_it_has_is_done(
    app: App, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = filled(app, FILES_MAX // 4)
    assert merging(app, online=False).run(table, bytes_max=MIB, seconds=1) == 0
    assert not jobs_of(table)
    with monkeypatch.context() as patched:
        patched.setattr(RunCompactionJob, "run", killed)
        with pytest.raises(KeyboardInterrupt):
            merging(app).run(table, bytes_max=MIB, seconds=1)
    clock.advance(LOST_SECONDS)
    assert merging(app, online=False).run(table, bytes_max=MIB, seconds=1) == 1


def test_a_look_at_leaves_and_jobs_reads_once_how_large_a_row_is(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"leaf_files_max": FILES_MAX, "shared_file_rows_max": 50_000}
    table = Lake(app).create_table("t", SCHEMA, split_points=[30, 60], settings=settings)
    for number in range(FILES_MAX // 4):
        table.ingest(pa.table({"id": pa.array(range(number, 90, 7), pa.int64())}))
    with monkeypatch.context() as patched:
        patched.setattr(RunCompactionJob, "run", killed)
        with pytest.raises(KeyboardInterrupt):
            merging(app).run(table._opened, bytes_max=MIB, seconds=0)
    reads, read = list[int](), file_parts.row_bytes

    def counted(state: TableState) -> float:
        reads.append(1)
        return read(state)

    monkeypatch.setattr(file_parts, "row_bytes", counted)
    assert merging(app).run(table._opened, bytes_max=MIB, seconds=0) == 1
    assert len(reads) == 1
