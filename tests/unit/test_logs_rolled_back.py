"""The log of a real lake is cut, restored from an older copy, or deleted: nothing is committed
behind the gap or shown from a state that the log does not hold (H33, H34)."""

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest

import lakebed
from lakebed.errors import LogMissingError, LogRolledBackError
from lakebed.inspection.repair import RepairPlan

SCHEMA = lakebed.schema_of(row_keys={"id": "int64"})
FRAME_BYTES = 4096 + 24
"""A page in a write-ahead file of SQLite, with what is said of it."""


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64())})


def ids_of(table: lakebed.Table) -> list[int]:
    return [int(id_) for batch in table.query() for id_ in batch.column("id").to_pylist()]


def log_files(root: Path) -> list[Path]:
    return sorted((root / "logs").iterdir())


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[lakebed.Lake]:
    """A lake with entries 1 to 3 in a copy of its log, and two more behind them."""
    with lakebed.connect(tmp_path / "lake") as lake:
        table = lake.create_table("t", SCHEMA)
        for first in (1, 2):
            table.ingest(rows(first))
        shutil.copytree(tmp_path / "lake" / "logs", tmp_path / "yesterday")
        for first in (3, 4):
            table.ingest(rows(first))
        yield lake


def cut_the_wal(root: Path, _yesterday: Path) -> None:
    """Take the last entries out of the write-ahead file, as a disk without syncs does."""
    (wal,) = (path for path in log_files(root) if path.name.endswith("-wal"))
    frames = (wal.stat().st_size - 32) // FRAME_BYTES
    with wal.open("r+b") as file:
        file.truncate(32 + (frames - 1) * FRAME_BYTES)


def restore_yesterday(root: Path, yesterday: Path) -> None:
    shutil.rmtree(root / "logs")
    shutil.copytree(yesterday, root / "logs")


def delete_the_log(root: Path, _yesterday: Path) -> None:
    for path in log_files(root):
        path.unlink()


DAMAGES = [cut_the_wal, restore_yesterday, delete_the_log]
Damage = Callable[[Path, Path], None]


def given_copy(tmp_path: Path, damage: Damage) -> Path:
    """Return a copy of the lake as it lay on the disk, with a damaged log."""
    root = tmp_path / "copy"
    shutil.copytree(tmp_path / "lake", root)
    for path in log_files(root):
        if path.name.endswith("-shm"):
            path.unlink()
    damage(root, tmp_path / "yesterday")
    return root


@pytest.mark.usefixtures("lake")
@pytest.mark.parametrize("damage", DAMAGES)
def test_with_the_cache_kept_nothing_is_committed_or_shown(tmp_path: Path, damage: Damage) -> None:
    root = given_copy(tmp_path, damage)
    with lakebed.connect(root) as copy:
        for _ in range(2):
            with pytest.raises(LogRolledBackError, match="lakebed fsck") as told:
                copy.table("t")
            assert told.value.facts["entry"] == 5
            assert told.value.facts["log_ends"] in (0, 3, 4)
    if damage is delete_the_log:
        assert not log_files(root)


def steps_of(plan: RepairPlan) -> list[str]:
    """Return what would be done to tables; what the killed original left on the disk is swept."""
    return [step.action for step in plan.steps if step.action != "sweep-leftovers"]


def looked_at(root: Path) -> tuple[list[tuple[str, dict[str, str | int]]], RepairPlan]:
    """Return what fsck finds of a lake's logs, and what it would do."""
    with lakebed.connect(root) as copy:
        report = copy.fsck()
        assert report.is_damaged
        found = [(f.code, f.facts) for f in report.findings if f.severity == "damage"]
        return found, copy.plan_repair(report)


@pytest.mark.usefixtures("lake")
@pytest.mark.parametrize(("damage", "code", "ends"), [
    (cut_the_wal, "log-behind", 4),
    (restore_yesterday, "log-behind", 3),
    (delete_the_log, "log-missing", None),
])  # fmt: skip
def test_fsck_says_that_the_log_has_lost_what_the_cache_knows(
    tmp_path: Path, damage: Damage, code: str, ends: int | None
) -> None:
    root = given_copy(tmp_path, damage)
    facts: dict[str, str | int] = {"table": "t", "heard_of": 5}
    if ends is not None:
        facts["ends"] = ends
    for _ in range(2):
        found, plan = looked_at(root)
        assert found == [(code, facts)]
        assert not steps_of(plan)


@pytest.mark.usefixtures("lake")
@pytest.mark.parametrize("keeps_cache", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_fsck_finds_entries_however_far_behind_a_gap(tmp_path: Path, keeps_cache: bool) -> None:
    root = given_copy(tmp_path, lambda _root, _yesterday: None)
    log = next(path for path in log_files(root) if path.suffix == ".sqlite")
    with closing(sqlite3.connect(log)) as connection, connection:
        connection.execute("UPDATE entry SET number = number + 1000 WHERE number > 3")
    if not keeps_cache:
        shutil.rmtree(root / "cache")
        with lakebed.connect(root) as copy:
            assert ids_of(copy.table("t")) == [1, 2]
            with pytest.raises(LogRolledBackError, match="lakebed fsck"):
                copy.table("t").ingest(rows(9))  # the gap would close, and two histories meet
    found, plan = looked_at(root)
    facts = {"table": "t", "after": 3, "heard_of": 1005, "behind": 2, "first": 1004}
    assert found == [("log-gap", facts)]
    assert not steps_of(plan)


@pytest.mark.usefixtures("lake")
@pytest.mark.parametrize("damage", [cut_the_wal, restore_yesterday])
def test_with_the_cache_deleted_the_log_is_what_it_says(tmp_path: Path, damage: Damage) -> None:
    root = given_copy(tmp_path, damage)
    shutil.rmtree(root / "cache")
    with lakebed.connect(root) as copy:
        found = ids_of(copy.table("t"))
        assert found in ([1, 2], [1, 2, 3])
        copy.table("t").ingest(rows(9))
        assert ids_of(copy.table("t")) == [*found, 9]


@pytest.mark.usefixtures("lake")
def test_a_log_that_is_missing_is_told_and_never_begun_again(tmp_path: Path) -> None:
    root = given_copy(tmp_path, delete_the_log)
    shutil.rmtree(root / "cache")
    with lakebed.connect(root) as copy:
        for _ in range(2):
            with pytest.raises(LogMissingError, match="the log of table t is missing"):
                copy.table("t")
        assert "t" in copy.tables()
    assert not log_files(root)


@pytest.mark.usefixtures("lake")
def test_scheduled_work_and_backups_say_that_the_log_is_missing(tmp_path: Path) -> None:
    root = given_copy(tmp_path, delete_the_log)
    shutil.rmtree(root / "cache")
    with lakebed.connect(root) as copy:
        with pytest.raises(LogMissingError):
            copy.run()
        done = copy.backup(tmp_path / "backup")
    assert [table.table for table in done.tables] == ["t"], "it was not dropped"
    assert isinstance(done.failure, LogMissingError)
    assert not log_files(root)


@pytest.mark.parametrize("damage", [restore_yesterday, delete_the_log])
def test_a_process_that_has_the_log_open_notices_that_its_file_was_replaced(
    lake: lakebed.Lake, tmp_path: Path, damage: Damage
) -> None:
    table = lake.table("t")
    damage(tmp_path / "lake", tmp_path / "yesterday")
    with pytest.raises(LogRolledBackError):
        table.ingest(rows(5))
    with pytest.raises(LogRolledBackError):
        ids_of(table)


def test_a_log_that_went_on_without_the_state_is_another_one(
    lake: lakebed.Lake, tmp_path: Path
) -> None:
    root = given_copy(tmp_path, restore_yesterday)
    kept = tmp_path / "kept"
    shutil.move(root / "cache", kept)
    with lakebed.connect(root) as copy:
        for first in (13, 14, 15):
            copy.table("t").ingest(rows(first))
        entries = ids_of(copy.table("t"))
    shutil.rmtree(root / "cache")
    shutil.move(kept, root / "cache")
    with lakebed.connect(root) as copy, pytest.raises(LogRolledBackError) as told:
        copy.table("t")
    assert told.value.facts == {"entry": 5, "log_ends": 6}
    assert entries == [1, 2, 13, 14, 15]
    found, plan = looked_at(root)
    assert found == [("log-differs", {"table": "t", "number": 5})]
    assert not steps_of(plan), "the cache may be all that knows the entries that are gone"
    assert plan.left[0].code == "log-differs"
