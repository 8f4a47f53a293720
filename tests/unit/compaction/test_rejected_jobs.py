"""A merge that cannot be done ends: rejected with its reason, told once, and never made again as it
was. What lifts it: another setting, smaller leaves, an operator's word."""

import logging
import random
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest

import lakebed
from lakebed.backends.memory import MemoryObjectStore
from lakebed.backends.memory.clock import VirtualClock
from lakebed.bootstrap.app import App
from lakebed.bootstrap.local import open_local
from lakebed.bootstrap.memory import Memory
from lakebed.compaction import run_job
from lakebed.errors import (
    DeniedError,
    IteratorError,
    LakebedError,
    MergeMemoryError,
    OutOfMemoryError,
    UnavailableError,
)
from lakebed.lake import Lake
from lakebed.model.names import MICROS_PER_SECOND, Micros
from lakebed.ports.job_tracker import KEPT_SECONDS
from lakebed.sorted_files.parquet_files import ParquetFiles
from lakebed.tasks.work_done import WorkDone

SCHEMA = lakebed.schema_of(row_keys={"k": "int64"}, values={"body": "binary"})
MIB = 1 << 20
DAYS = 86_400
RECEIVES_MAX = 5
"""Of a message, before it is a dead letter."""


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def objects(clock: VirtualClock) -> MemoryObjectStore:
    return MemoryObjectStore(clock, object_bytes_max=MIB)


@pytest.fixture
def app(tmp_path: Path, clock: VirtualClock, objects: MemoryObjectStore) -> App:
    return open_local(tmp_path / "lake", clock=clock, objects=objects)


@pytest.fixture
def lake(app: App) -> Lake:
    """A lake whose store keeps no object of more than 1 MiB."""
    return Lake(app)


def filled(lake: Lake) -> lakebed.Table:
    """Return a table with three files of 0.6 MB, which are merged into one as soon as may be."""
    table = lake.create_table("t", SCHEMA, settings={"job_files_max": 3, "size_ratio": 2})
    for part in range(3):
        keys = range(part, 180, 3)
        bodies = pa.array([random.Random(key).randbytes(10_000) for key in keys], pa.binary())
        table.ingest(pa.table({"k": pa.array(keys, pa.int64()), "body": bodies}))
    return table


def told(lake: Lake) -> list[tuple[str, str]]:
    """Return event and code of each job of the table that has not ended well."""
    return [(job.report, job.reason.partition(":")[0]) for job in lake.status("t")[0].jobs]


def ids(lake: Lake) -> list[str]:
    return [job.id for job in lake.status("t")[0].jobs]


def rejections(caplog: pytest.LogCaptureFixture) -> int:
    return sum(one.message.startswith("compaction_rejected") for one in caplog.records)


def test_an_output_beyond_the_stores_limit_is_told_once_and_never_made_again(
    lake: Lake,
    clock: VirtualClock,
    objects: MemoryObjectStore,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    with lake:
        table = filled(lake)
        with pytest.raises(LakebedError, match="an object is too large"):
            lake.run()
        assert told(lake) == [("rejected", "object-too-large")]
        jobs, stored = ids(lake), list(objects.list(""))
        for _ in range(20):
            clock.advance(DAYS)
            assert lake.run() == WorkDone()
        assert ids(lake) == jobs, "nothing was planned or given up"
        assert list(objects.list("")) == stored, "nothing was written"
        assert rejections(caplog) == 1
        assert table.query().read_all().num_rows == 180


def test_it_outlives_the_time_for_which_reports_are_kept(
    lake: Lake, clock: VirtualClock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    with lake:
        filled(lake)
        with pytest.raises(LakebedError, match="an object is too large"):
            lake.run()
        (rejected,) = lake.table("t").jobs(events=["rejected"])
        for _ in range(4 * KEPT_SECONDS // DAYS):
            clock.advance(DAYS)
            assert lake.run() == WorkDone()
        assert rejections(caplog) == 1
        (renewed,) = lake.table("t").jobs(events=["rejected"])
        assert renewed.at == rejected.at
        assert clock.now() - renewed.renewed < KEPT_SECONDS * MICROS_PER_SECOND
        reports = lake.table("t").jobs(job=rejected.job)
        assert [one.event for one in reports].count("rejected") == 1


def test_its_report_is_renewed_twice_in_its_life_and_no_more_often(
    lake: Lake, clock: VirtualClock
) -> None:
    with lake:
        filled(lake)
        with pytest.raises(LakebedError, match="an object is too large"):
            lake.run()
        times = set()
        for _ in range(2 * KEPT_SECONDS // DAYS):
            clock.advance(DAYS)
            lake.run()
            times |= {one.renewed for one in lake.table("t").jobs(events=["rejected"])}
        assert len(times - {0}) == 4


@pytest.mark.parametrize("ahead_days", [-400, 400])
def test_a_clock_that_was_wrong_when_it_was_told_does_not_end_it(
    app: App, lake: Lake, clock: VirtualClock, ahead_days: int
) -> None:
    """The report is of a time long past or far ahead, and by that reports are forgotten."""
    with lake:
        filled(lake)
        with pytest.raises(LakebedError, match="an object is too large"):
            lake.run()
        (right,) = lake.table("t").jobs(events=["rejected"])
        wrong = Micros(right.at + ahead_days * DAYS * MICROS_PER_SECOND)
        app.tracker.forget(before=Micros(right.at + 1))
        app.tracker.report(msgspec.structs.replace(right, at=wrong))
        for _ in range(2 * KEPT_SECONDS // DAYS):
            clock.advance(DAYS)
            assert lake.run() == WorkDone()


def test_smaller_leaves_lift_it(lake: Lake, clock: VirtualClock) -> None:
    with lake:
        table = filled(lake)
        with pytest.raises(LakebedError, match="an object is too large"):
            lake.run()
        table.change_settings(leaf_bytes_max=MIB)
        for _ in range(5):
            clock.advance(1_000)
            lake.run()
        assert told(lake) == []
        found = lake.status("t")[0]
        assert found.leaves == found.files == 3
        assert table.query().read_all().num_rows == 180


def test_another_limit_and_an_operators_word_lift_it(
    lake: Lake, clock: VirtualClock, objects: MemoryObjectStore
) -> None:
    with lake:
        table = filled(lake)
        with pytest.raises(LakebedError, match="an object is too large"):
            lake.run()
        objects.object_bytes_max = None
        clock.advance(DAYS)
        assert lake.run() == WorkDone()
        assert table.compact().jobs_done == 1
        assert told(lake) == []
        assert lake.status("t")[0].files == 1


def failing(
    monkeypatch: pytest.MonkeyPatch, error: BaseException, *, is_begun: bool = True
) -> list[None]:
    """Let merges fail, or what is before them. Returns what grows with each."""
    merges: list[None] = []

    def merge(*_: object, **__: object) -> None:
        merges.append(None)
        raise error

    if is_begun:
        monkeypatch.setattr(ParquetFiles, "merge_into_file", merge)
    else:
        monkeypatch.setattr(run_job, "taken_job", merge)
    return merges


def test_an_iterator_that_fails_is_not_run_again_and_again(
    lake: Lake, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with lake:
        table = filled(lake)
        merges = failing(monkeypatch, IteratorError("an iterator failed", name="x"))
        with pytest.raises(IteratorError):
            lake.run()
        for _ in range(20):
            clock.advance(DAYS)
            assert lake.run() == WorkDone()
        assert len(merges) == 1
        assert told(lake) == [("rejected", "iterator")]
        table.change_settings(job_files_max=4)
        with pytest.raises(IteratorError):
            lake.run()
        assert len(merges) == 2


def test_a_merge_that_lacks_memory_is_tried_some_times_and_then_rejected(
    lake: Lake, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with lake:
        filled(lake)
        merges = failing(monkeypatch, MemoryError("malloc of size 7 failed"))
        while told(lake) != [("rejected", "out-of-memory")]:
            with suppress(OutOfMemoryError):
                lake.run()
            clock.advance(1_000)
        tried = len(merges)
        assert tried >= RECEIVES_MAX
        for _ in range(20):  # other messages of the job are on their way, and do nothing
            clock.advance(DAYS)
            lake.run()
        assert len(merges) == tried
        assert told(lake) == [("rejected", "out-of-memory")]


class KilledError(BaseException):
    """Ends a process at once: nothing is reported after it."""


def run_as_processes_that_are_started_again(lake: Lake) -> None:
    """Run until a process is not killed: messages that others took are hidden from it."""
    for _ in range(RECEIVES_MAX):
        with suppress(KilledError):
            lake.run()
            return


def test_a_merge_that_is_killed_each_time_is_rejected_and_never_made_again(
    lake: Lake, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel kills a task that needs too much memory: it cannot say so itself."""
    with lake:
        filled(lake)
        merges = failing(monkeypatch, KilledError())
        while told(lake) != [("rejected", "out-of-memory")]:
            assert len(merges) < 4 * RECEIVES_MAX, "it is tried again and again"
            run_as_processes_that_are_started_again(lake)
            clock.advance(1_000)
        tried = len(merges)
        assert tried >= RECEIVES_MAX
        for _ in range(20):  # other messages of the job are on their way, and do nothing
            lake.run()
            clock.advance(DAYS)
        assert len(merges) == tried
        assert "runs was stopped before it could report" in lake.status("t")[0].jobs[0].reason


def test_a_merge_that_is_killed_some_times_and_fails_otherwise_is_no_reason_to_reject(
    lake: Lake, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fewer kills than tries do not show that the task is too small."""
    with lake:
        filled(lake)
        for tried in range(3 * RECEIVES_MAX):
            killed = tried % RECEIVES_MAX
            failing(monkeypatch, KilledError() if killed else UnavailableError("the store is busy"))
            with suppress(KilledError, UnavailableError):
                lake.run()
            clock.advance(1_000)
            assert not any(event == "rejected" for event, _ in told(lake))


@pytest.fixture
def memory_lake(tmp_path: Path, clock: VirtualClock) -> Callable[[int | None], Lake]:
    """What opens a lake whose merges may take so many bytes; None: the usual."""
    objects = MemoryObjectStore(clock)
    return lambda merge_bytes: Lake(
        open_local(
            tmp_path / "small",
            clock=clock,
            objects=objects,
            memory=Memory(merge_bytes=merge_bytes),
        )
    )


def test_a_merge_that_never_fits_its_memory_is_rejected_until_a_user_with_more_asks(
    memory_lake: Callable[[int | None], Lake],
    clock: VirtualClock,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    with memory_lake(MIB) as lake:
        filled(lake)
        with pytest.raises(MergeMemoryError, match="needs more memory"):
            lake.run()
        assert told(lake) == [("rejected", "merge-memory")]
        jobs = ids(lake)
        for _ in range(20):
            clock.advance(DAYS)
            assert lake.run() == WorkDone()
        assert ids(lake) == jobs, "nothing was planned or given up"
        assert rejections(caplog) == 1
    with memory_lake(None) as lake:
        assert lake.run() == WorkDone(), "the state does not show what a process may take"
        assert lake.table("t").compact().jobs_done == 1
        assert told(lake) == []
        assert lake.status("t")[0].files == 1


def test_a_setting_makes_other_jobs_of_files_that_were_too_many_for_the_memory(
    lake: Lake,
    clock: VirtualClock,
    objects: MemoryObjectStore,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    objects.object_bytes_max = None
    with lake:
        table = filled(lake)
        with monkeypatch.context() as limited:
            failing(limited, MergeMemoryError("a merge needs more memory than it may take"))
            with pytest.raises(MergeMemoryError):
                lake.run()
        (rejected,) = ids(lake)
        table.change_settings(job_files_max=2, size_ratio=1)
        for _ in range(3):
            clock.advance(1_000)
            lake.run()
        assert told(lake) == []
        assert [one.event for one in table.jobs(job=rejected)][-1] == "given up"
        assert lake.status("t")[0].files < 3


@pytest.mark.parametrize("is_begun", [True, False])
def test_a_bug_comes_back_each_time_and_is_rejected_by_its_name_then(
    lake: Lake, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch, is_begun: bool
) -> None:
    with lake:
        filled(lake)
        runs = failing(monkeypatch, ValueError("rows are not sorted"), is_begun=is_begun)
        for _ in range(RECEIVES_MAX):
            with pytest.raises(ValueError, match="rows are not sorted"):
                lake.run()
            clock.advance(1_000)
        (job,) = ids(lake)
        for _ in range(20):
            assert lake.run() == WorkDone()
            clock.advance(DAYS)
        (rejected,) = lake.status("t")[0].jobs
        assert (rejected.id, rejected.report) == (job, "rejected")
        assert rejected.reason == "bug: ValueError: rows are not sorted"
        assert len(runs) == RECEIVES_MAX


@pytest.mark.parametrize(
    "error", [UnavailableError("the store is busy"), DeniedError("the store refuses")]
)
def test_what_a_store_answers_is_no_reason_to_reject(
    lake: Lake, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch, error: LakebedError
) -> None:
    with lake:
        filled(lake)
        merges = failing(monkeypatch, error)
        while len(merges) <= RECEIVES_MAX:
            with suppress(type(error)):
                lake.run()
            clock.advance(1_000)
        assert not any(event == "rejected" for event, _ in told(lake))
