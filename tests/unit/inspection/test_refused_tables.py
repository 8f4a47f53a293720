"""What a disk, a permission or a store refuses of one table is a finding: fsck does not raise, and
checks the others."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import lakebed
from lakebed.backends.local import sqlite_database
from lakebed.backends.local.object_store import LocalObjectStore
from lakebed.errors import (
    DeniedError,
    InvalidError,
    LakebedError,
    ObjectMissingError,
    StorageFullError,
    UnavailableError,
    UnknownOutcomeError,
)
from lakebed.inspection.replay import Replay, ReplayLog
from lakebed.lake import Lake
from lakebed.model.names import TransactionNumber
from lakebed.ports.object_store import ObjectStore
from tests.unit.inspection.damages import refuse
from tests.unit.tables.lakes import SCHEMA, ids, rows

REFUSED = (DeniedError, UnavailableError, UnknownOutcomeError, InvalidError)
NAMES = ("another", "bad", "whole")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A lake of three tables, each with a snapshot."""
    with lakebed.connect(tmp_path / "lake") as lake:
        for name in NAMES:
            table = lake.create_table(name, SCHEMA)
            table.ingest(rows(["1"]))
            table.write_snapshot()
    return tmp_path / "lake"


@pytest.fixture
def lake(path: Path) -> Iterator[Lake]:
    with lakebed.connect(path) as lake:
        yield lake


def id_of(lake: Lake, name: str) -> str:
    return str(lake._app.catalog.entry(name).id)


def found(lake: Lake, *, deep: bool = True) -> set[tuple[str, str]]:
    """Return code and table of each finding; the other two tables were checked."""
    report = lake.fsck(deep=deep)
    assert report.tables == 3
    assert report.files >= 2
    return {(one.code, str(one.facts.get("table", ""))) for one in report.findings}


def refuse_database(monkeypatch: pytest.MonkeyPatch, part: str, error: type[LakebedError]) -> None:
    """Let each use of databases whose path has this part fail."""
    opened = sqlite_database.SqliteDatabase._open

    def fail(database: sqlite_database.SqliteDatabase) -> object:
        if part in str(database.path):
            raise error("refused", path=database.path)
        return opened(database)

    monkeypatch.setattr(sqlite_database.SqliteDatabase, "_open", fail)


def refuse_objects(
    monkeypatch: pytest.MonkeyPatch, part: str, error: type[LakebedError], *calls: str
) -> None:
    """Let calls fail that are about a path with this part."""

    def failing(call: str) -> object:
        act = getattr(LocalObjectStore, call)

        def fail(store: ObjectStore, path: str, *args: object, **options: object) -> object:
            if part in path:
                raise error("refused", path=path)
            return act(store, path, *args, **options)

        return fail

    for call in calls:
        monkeypatch.setattr(LocalObjectStore, call, failing(call))


@pytest.mark.parametrize("error", REFUSED)
@pytest.mark.parametrize("has_cache", [True, False])
def test_a_log_that_is_refused_is_a_finding(
    path: Path, monkeypatch: pytest.MonkeyPatch, error: type[LakebedError], has_cache: bool
) -> None:
    if not has_cache:
        shutil.rmtree(path / "cache")
    with lakebed.connect(path) as lake:
        refuse_database(monkeypatch, id_of(lake, "bad"), error)
        assert found(lake) == {("table-unreadable", "bad")}
        (one,) = lake.fsck("bad").findings
        assert "refused" in str(one.facts["problem"])


@pytest.mark.parametrize("error", REFUSED)
def test_a_file_that_is_refused_is_a_finding(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, error: type[LakebedError]
) -> None:
    part = f"{id_of(lake, 'bad')}/files/"
    refuse_objects(monkeypatch, part, error, "read", "look", "size_of")
    assert found(lake) == {("file-unreadable", "bad")}
    assert found(lake, deep=False) == {("file-unreadable", "bad")}


@pytest.mark.parametrize("error", REFUSED)
def test_a_snapshot_that_is_refused_is_a_finding_and_is_not_deleted(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, error: type[LakebedError]
) -> None:
    part = f"{id_of(lake, 'bad')}/snapshots/"
    with monkeypatch.context() as broken:
        refuse_objects(broken, part, error, "read", "look", "size_of")
        assert found(lake) == {("snapshot-unreadable", "bad")}
        lake.repair(lake.plan_repair(lake.fsck()))
    assert found(lake) == set()


def test_a_folder_of_a_table_that_is_refused_is_a_finding(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    id_, listed = id_of(lake, "bad"), LocalObjectStore.list

    def refused(store: LocalObjectStore, prefix: str, *, below: str | None = None) -> Iterator[str]:
        for one in listed(store, prefix, below=below):
            if id_ in one:
                raise DeniedError("refused", path=one)
            yield one

    monkeypatch.setattr(LocalObjectStore, "list", refused)
    assert found(lake) == {("table-unreadable", "bad"), ("lake-unreadable", "")}


def test_what_was_found_before_an_error_is_kept(
    lake: Lake, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    id_ = id_of(lake, "bad")
    (file,) = path.glob(f"objects/tables/{id_}/files/*")
    refuse(file)
    listed = LocalObjectStore.list

    def refused(store: LocalObjectStore, prefix: str, *, below: str | None = None) -> Iterator[str]:
        if prefix == f"tables/{id_}/":
            raise UnavailableError("refused")
        return listed(store, prefix, below=below)

    monkeypatch.setattr(LocalObjectStore, "list", refused)
    assert found(lake) == {("file-unreadable", "bad"), ("table-unreadable", "bad")}


@pytest.mark.parametrize("error", REFUSED)
def test_a_log_without_a_name_that_is_refused_is_a_finding(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, path: Path, error: type[LakebedError]
) -> None:
    (log,) = path.glob(f"logs/{id_of(lake, 'bad')}.sqlite")
    log.with_name("nameless.sqlite").write_bytes(log.read_bytes())
    refuse_database(monkeypatch, "nameless", error)
    (one,) = lake.fsck().findings
    assert (one.code, one.facts["id"]) == ("table-unreadable", "nameless")


@pytest.mark.parametrize(("times", "codes"), [(1, set()), (2, {("table-unreadable", "bad")})])
def test_what_another_process_takes_away_meanwhile_is_looked_for_once_more(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, times: int, codes: set[tuple[str, str]]
) -> None:
    run, left = ReplayLog.run, [times]

    def taken(replay: ReplayLog, upto: TransactionNumber | None) -> Replay:
        if replay._table == "bad" and left[0]:
            left[0] -= 1
            raise ObjectMissingError("a snapshot")
        return run(replay, upto)

    monkeypatch.setattr(ReplayLog, "run", taken)
    assert found(lake) == codes


def test_a_full_disk_of_this_machine_is_an_error_and_no_finding(
    lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse_database(monkeypatch, id_of(lake, "bad"), StorageFullError)
    with pytest.raises(StorageFullError):
        lake.fsck()


@pytest.mark.parametrize("error", [DeniedError, UnavailableError])
def test_without_names_of_tables_nothing_can_be_checked(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, error: type[LakebedError]
) -> None:
    refuse_database(monkeypatch, "tables.sqlite", error)
    with pytest.raises(error):
        lake.fsck()


@pytest.mark.parametrize("name", ["{}.copy.sqlite", "{}.sqlite.bak", "a b.sqlite", "notes.txt"])
def test_a_stranger_among_the_logs_is_found_and_passed_over(
    lake: Lake, path: Path, name: str
) -> None:
    log = path / "logs" / f"{id_of(lake, 'bad')}.sqlite"
    stray = log.with_name(name.format(log.stem))
    stray.write_bytes(log.read_bytes())
    lake.run()
    assert found(lake) == {("log-stray", "")}
    report = lake.fsck()
    assert [one.facts["name"] for one in report.findings] == [stray.name]
    assert not report.is_damaged
    assert stray.exists()
    assert ids(lake.table("bad")) == ["1"]
