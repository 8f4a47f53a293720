"""Damage in one table, and what the others notice of it: nothing."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import lakebed
from lakebed.backends.local.file_batches import SqliteFileBatches
from lakebed.backends.local.job_tracker import SqliteJobTracker
from lakebed.backends.memory.clock import VirtualClock
from lakebed.bootstrap.local import open_local
from lakebed.errors import CorruptError, TableMissingError
from lakebed.lake import Lake
from lakebed.sorted_files.parquet_files import ParquetFiles
from lakebed.statestore.open_table import OpenTable
from lakebed.tasks.failed_work import LONGEST_WAIT_SECONDS, FailedWork
from tests.unit.tables.lakes import SCHEMA, ids, rows

NAMES = ("aaa", "bad", "zzz")
DAYS = 86_400
SETTINGS = {"compaction_strategy": "basic", "job_files_max": 2, "leaf_rows_max": 1_000}


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def lake(tmp_path: Path, clock: VirtualClock) -> Iterator[Lake]:
    """Three tables of two files each, which are due to be merged."""
    with Lake(open_local(tmp_path / "lake", clock=clock)) as opened:
        for name in NAMES:
            opened.create_table(name, SCHEMA, split_points=["5"], settings=SETTINGS)
            filled(opened, name, "0")
        yield opened


def filled(lake: Lake, name: str, first: str) -> None:
    for n in range(2):
        lake.table(name).ingest(rows([f"{first}{n}{m}" for m in range(10)]))


def folder_of(lake: Lake) -> Path:
    return Path(lake._app.location)


def id_of(lake: Lake, name: str) -> str:
    return lake._app.catalog.entry(name).id


def damage_a_file(lake: Lake, name: str, *, at: int = -20, which: int = 0) -> Path:
    """Flip a byte of one of a table's files: by default one that its checksum of the tail sees."""
    path = sorted(folder_of(lake).glob(f"objects/tables/{id_of(lake, name)}/files/**/*.parquet"))[
        which
    ]
    flip(path, at)
    return path


def flip(path: Path, at: int) -> None:
    body = bytearray(path.read_bytes())
    body[at] ^= 1
    path.write_bytes(body)


def damage_the_log(path: Path, lake: Lake, name: str) -> Path:
    """Overwrite the log of a table, whose state no process of this machine keeps any more."""
    id_ = id_of(lake, name)
    lake.close()
    (log,) = path.glob(f"logs/{id_}.sqlite")
    for state in path.glob(f"cache/**/{id_}.sqlite*"):
        state.unlink()
    log.write_bytes(b"\0" * log.stat().st_size)
    for left in path.glob(f"logs/{id_}.sqlite-*"):
        left.unlink()
    return log


def files(lake: Lake, name: str) -> int:
    return lake.status(name)[0].files


def failures(lake: Lake, tables: list[str] | None = None) -> list[FailedWork]:
    found: list[FailedWork] = []
    lake.run(tables, failed=found.append)
    return found


def test_a_damaged_file_harms_no_other_table(lake: Lake) -> None:
    path = damage_a_file(lake, "bad")
    with pytest.raises(CorruptError) as raised:
        lake.run()
    assert [files(lake, name) for name in NAMES] == [1, 2, 1]
    assert raised.value.facts["table"] == "bad"
    assert str(raised.value.facts["path"]).endswith(path.name)
    assert "lakebed fsck bad --deep" in str(raised.value.hint)
    assert ids(lake.table("zzz")) == [f"0{n}{m}" for n in range(2) for m in range(10)]


def test_a_damaged_log_harms_no_other_table(tmp_path: Path, lake: Lake) -> None:
    log = damage_the_log(tmp_path / "lake", lake, "bad")
    with lakebed.connect(tmp_path / "lake") as again:
        with pytest.raises(CorruptError) as raised:
            again.run()
        assert raised.value.facts["table"] == "bad"
        assert str(raised.value.facts["path"]) == str(log)
        assert [files(again, name) for name in ("aaa", "zzz")] == [1, 1]


def test_what_failed_is_given_to_whoever_asks_the_gravest_first(lake: Lake) -> None:
    damage_a_file(lake, "zzz")
    found = failures(lake)
    assert [(one.table, one.work, one.code) for one in found] == [("zzz", "compaction", "corrupt")]


def test_damage_in_a_sample_keeps_no_other_leaf_from_its_split(lake: Lake) -> None:
    """A split reads the tail of each file of a leaf."""
    table = lake.table("bad")
    table.ingest(rows([f"9{n:03d}" for n in range(10)]))
    assert lake.run().jobs_done == 3
    for name in NAMES:
        lake.table(name).change_settings(leaf_rows_max=5)
    damage_a_file(lake, "bad", which=-1)
    found = failures(lake)
    assert {(one.table, one.work, one.code) for one in found} >= {("bad", "splitting", "corrupt")}
    leaves = {status.name: status.leaves for status in lake.status()}
    assert leaves["aaa"] > 2
    assert leaves["zzz"] > 2
    assert leaves["bad"] > 2, "its healthy leaf was split"


def test_the_work_that_failed_is_tried_again_later_and_later(
    lake: Lake,
    clock: VirtualClock,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    caplog.set_level(logging.INFO, logger="lakebed")
    app = lake._app
    tries = 0

    def broken(_: object) -> int:
        nonlocal tries
        tries += 1
        raise CorruptError("a file has no footer", path="p")

    monkeypatch.setattr(app.split_leaves, "run", broken)
    for wait in (10, 20, 40, 80, 160, 320, 640, 1_280, 2_560, *[LONGEST_WAIT_SECONDS] * 2):
        before = tries
        assert len(failures(lake)) == 3, "what waits is still told"
        clock.advance(wait - 1)
        failures(lake)
        assert tries == before + 3
        clock.advance(1)
    failures(lake)
    assert tries == 12 * 3
    told = [record for record in caplog.records if record.message.startswith("table_failed")]
    assert len(told) == tries


def test_who_names_a_table_does_not_wait(lake: Lake) -> None:
    path = damage_a_file(lake, "bad", which=0)
    lake.table("bad").change_settings(leaf_rows_max=5)
    assert {one.work for one in failures(lake)} == {"splitting", "compaction"}
    flip(path, -20)
    assert [one.work for one in failures(lake)] == ["splitting"]
    assert failures(lake, ["bad"]) == []
    assert failures(lake) == []


def test_a_bug_of_one_table_is_raised_when_the_others_were_worked_on(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    collect, worked = lake._app.collect.run, set[str]()

    def broken(table: OpenTable) -> int:
        worked.add(table.name)
        assert table.name != "aaa", "a bug"
        return collect(table)

    monkeypatch.setattr(lake._app.collect, "run", broken)
    with pytest.raises(AssertionError, match="a bug"):
        lake.run()
    assert worked == set(NAMES)


def test_notes_tell_the_other_failures(lake: Lake) -> None:
    damage_a_file(lake, "aaa")
    damage_a_file(lake, "zzz")
    with pytest.raises(CorruptError) as raised:
        lake.run()
    (note,) = raised.value.__notes__
    assert note.startswith("compaction of table zzz failed, too: ")


def test_a_job_with_a_damaged_input_is_told_once_and_not_planned_again(
    lake: Lake, clock: VirtualClock
) -> None:
    path = damage_a_file(lake, "bad")
    (failed,) = failures(lake)
    assert (failed.table, failed.work, failed.code) == ("bad", "compaction", "corrupt")
    number = lake.status("bad")[0].number
    (job,) = lake.status("bad")[0].jobs
    assert (job.report, job.files) == ("rejected", 2)
    assert path.name in job.reason
    for _ in range(20):
        clock.advance(1_000)
        assert failures(lake) == []
    assert lake.status("bad")[0].number == number, "nothing was planned or given up"
    filled(lake, "bad", "9")
    assert failures(lake) == []
    assert files(lake, "bad") == 3, "the other leaf was merged"
    flip(path, -20)
    clock.advance(20 * 86_400)
    assert failures(lake) == []
    assert files(lake, "bad") == 3, "what was restored is not seen by itself"
    lake.table("bad").compact()
    assert files(lake, "bad") == 2
    assert len(ids(lake.table("bad"))) == 40


def test_a_job_whose_input_is_gone_is_rejected_too(lake: Lake) -> None:
    damage_a_file(lake, "bad").unlink()
    (failed,) = failures(lake)
    assert (failed.table, failed.code) == ("bad", "corrupt")
    (job,) = lake.status("bad")[0].jobs
    assert job.report == "rejected"
    assert "missing" in job.reason


def test_a_log_without_a_name_that_is_damaged_stops_no_sweep(tmp_path: Path, lake: Lake) -> None:
    id_ = id_of(lake, "bad")
    damage_the_log(tmp_path / "lake", lake, "bad")
    with lakebed.connect(tmp_path / "lake") as again:
        app = again._app
        app.registry.release(app.catalog.entry("bad").name, app.catalog.entry("bad").id)
        (failed,) = failures(again)
        assert (failed.table, failed.work) == ("(nameless)", "sweep")
        assert isinstance(failed.error, CorruptError)
        assert failed.error.facts["id"] == id_
        with pytest.raises(CorruptError):
            again.run()


def test_who_names_no_table_is_told(lake: Lake) -> None:
    with pytest.raises(TableMissingError):
        lake.run(["aaaa"])


def given_file(folder: Path, name: str, *keys: str) -> str:
    pq.write_table(rows(keys), folder / name)
    return str(folder / name)


def damage_a_store(lake: Lake, name: str, *, is_gone: bool = False) -> Path:
    """Overwrite a file of SQLite that all tables share, or delete it."""
    path = folder_of(lake) / "queues" / f"{name}.sqlite"
    for store in (lake._app.batches, lake._app.tracker):
        assert isinstance(store, SqliteFileBatches | SqliteJobTracker)
        store.close()
    if is_gone:
        path.unlink()
    else:
        path.write_bytes(b"\0" * path.stat().st_size)
    for left in path.parent.glob(f"{name}.sqlite-*"):
        left.unlink()
    return path


def parquet_files(lake: Lake) -> int:
    return len(list(folder_of(lake).glob("objects/tables/*/files/**/*.parquet")))


@pytest.mark.parametrize("is_gone", [False, True])
def test_damaged_batches_keep_no_table_from_its_other_work(
    tmp_path: Path, lake: Lake, clock: VirtualClock, is_gone: bool
) -> None:
    lake.table("aaa").submit([given_file(tmp_path, "a.parquet", "0x")])
    path = folder_of(lake) / "queues" / "batches.sqlite"
    lake._app.batches.close()  # type: ignore[union-attr]  # of SQLite
    whole = path.read_bytes()
    damage_a_store(lake, "batches", is_gone=is_gone)
    with pytest.raises(CorruptError, match=r"batches\.sqlite") as raised:
        lake.run()
    assert "fsck (all)" not in str(raised.value.hint)
    assert "table" not in raised.value.facts
    assert [files(lake, name) for name in NAMES] == [1, 1, 1]
    clock.advance(30 * DAYS)
    (failed,) = failures(lake)
    assert (failed.table, failed.work, failed.code) == ("(all)", "batching", "corrupt")
    assert parquet_files(lake) == 3, "garbage was collected"
    path.write_bytes(whole)
    clock.advance(3_600)
    assert failures(lake) == []
    assert "0x" in ids(lake.table("aaa"))


def test_a_bug_in_a_merge_of_one_table_keeps_no_other_from_its_work(
    lake: Lake, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    merge, id_ = ParquetFiles.merge_into_file, id_of(lake, "aaa")

    def broken(self: ParquetFiles, *given: object, path: str, **named: object) -> object:
        if id_ in path:
            raise TypeError("a bug")
        return merge(self, *given, path=path, **named)  # type: ignore[arg-type]  # as it was given

    monkeypatch.setattr(ParquetFiles, "merge_into_file", broken)
    with pytest.raises(TypeError, match="a bug"):
        lake.run()
    assert [files(lake, name) for name in NAMES] == [2, 1, 1]
    clock.advance(30 * DAYS)
    with pytest.raises(TypeError, match="a bug"):
        lake.run()
    assert parquet_files(lake) == 4, "garbage was collected"


def test_a_bug_in_a_batch_of_one_table_keeps_no_other_from_its_work(
    tmp_path: Path, lake: Lake, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    ingest, id_ = lake._app.ingest.run, id_of(lake, "aaa")

    def broken(table: OpenTable, *given: object) -> object:
        if table.id == id_:
            raise TypeError("a bug")
        return ingest(table, *given)  # type: ignore[arg-type]  # as it was given

    for name in NAMES:
        lake.table(name).submit([given_file(tmp_path, f"{name}.parquet", "0x")])
    monkeypatch.setattr(lake._app.ingest, "run", broken)
    clock.advance(3_600)
    with pytest.raises(TypeError, match="a bug"):
        lake.run()
    assert ["0x" in ids(lake.table(name)) for name in NAMES] == [False, True, True]
    assert [files(lake, name) for name in NAMES] == [1, 1, 1]


def test_a_damaged_log_without_a_name_keeps_no_table_from_its_batches(
    tmp_path: Path, lake: Lake, clock: VirtualClock
) -> None:
    for name in ("bad", "zzz"):
        lake.table(name).submit([given_file(tmp_path, f"{name}.parquet", "0x")])
    damage_the_log(tmp_path / "lake", lake, "bad")
    with Lake(open_local(tmp_path / "lake", clock=clock)) as again:
        entry = again._app.catalog.entry("bad")
        again._app.registry.release(entry.name, entry.id)
        clock.advance(3_600)
        works = {(one.table, one.work, one.code) for one in failures(again)}
        assert ("(nameless)", "batching", "corrupt") in works
        assert "0x" in ids(again.table("zzz"))


def test_damaged_reports_of_jobs_keep_no_table_from_new_jobs(
    lake: Lake, clock: VirtualClock
) -> None:
    creation = ["compaction-creation"]
    assert lake.run(kinds=creation).jobs_created == 3
    damage_a_store(lake, "jobs")
    for name in NAMES:
        filled(lake, name, "9")
    clock.advance(20 * DAYS)
    for _ in range(3):
        lake.run(kinds=creation)
        clock.advance(DAYS)
    assert lake._app.queue.depth() == (6, 0), "none was sent again and again"
    with pytest.raises(CorruptError, match=r"jobs\.sqlite"):
        lake.run()
    assert [files(lake, name) for name in NAMES] == [2, 2, 2]
    assert [(one.table, one.work) for one in failures(lake)] == [("(all)", "reports")]
