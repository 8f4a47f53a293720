"""The number of a format, in the header of one table's cache or log, is changed by a disk: that
table's rows are answered or refused, and fsck looks at the others."""

import shutil
import sqlite3
from pathlib import Path

import pyarrow as pa
import pytest

import lakebed
from lakebed.errors import CorruptError, NewerFormatError
from lakebed.inspection.fsck import FsckReport
from lakebed.lake import Lake
from tests.dsl.format_numbers import change_number, make_newer, number_in

NUMBERS = (-5, 0, 5, 99)
IDS = ["a", "b", "c"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake with the tables `t` and `u`, and the log of one that lost its name."""
    path = tmp_path_factory.mktemp("numbered") / "whole"
    with lakebed.connect(path) as lake:
        for name in ("t", "u", "nameless"):
            table = lake.create_table(name, lakebed.schema_of(row_keys={"id": "string"}))
            table.ingest(pa.table({"id": IDS}))
    return path


@pytest.fixture
def path(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "lake"))


def file_of(path: Path, folder: str, name: str = "t") -> Path:
    with lakebed.connect(path) as lake:
        id_ = lake._app.catalog.entry(name).id
    return path / folder / f"{id_}.sqlite"


def ids(lake: Lake, name: str) -> list[str]:
    return list(lake.table(name).query().read_all()["id"].to_pylist())


def codes(report: FsckReport, name: str) -> set[str]:
    return {one.code for one in report.findings if name in one.facts.values()}


@pytest.mark.parametrize("number", NUMBERS)
def test_rows_are_answered_though_the_number_of_a_cache_was_changed(
    path: Path, number: int
) -> None:
    cache = file_of(path, "cache")
    change_number(cache, number)
    with lakebed.connect(path) as lake:
        assert ids(lake, "t") == IDS
        assert lake.fsck().findings == ()
    assert number_in(cache.with_name(f"{cache.name}.damaged-1")) == number


@pytest.mark.parametrize("number", NUMBERS)
def test_fsck_finds_a_changed_number_of_a_cache_and_mends_it(path: Path, number: int) -> None:
    change_number(file_of(path, "cache"), number)
    with lakebed.connect(path) as lake:
        report = lake.fsck(deep=True)
        assert (report.tables, report.files) == (3, 3)
        assert [one.code for one in report.findings] == ["cache-damaged"]
        assert codes(report, "t") == {"cache-damaged"}
        assert f"it says format {number}" in str(report.findings[0].facts["problem"])
        (done,) = lake.repair(lake.plan_repair(report))
        assert (done.step.action, done.problem) == ("rebuild-cache", "")
        assert lake.fsck(deep=True).findings == ()
        assert ids(lake, "t") == IDS


@pytest.mark.parametrize("number", NUMBERS)
def test_fsck_finds_a_changed_number_of_a_log_and_checks_the_others(
    path: Path, number: int
) -> None:
    log = file_of(path, "logs")
    true = number_in(log)
    change_number(log, number)
    with lakebed.connect(path) as lake:
        with pytest.raises(CorruptError, match=f"it says format {number}"):
            lake.table("t").query().read_all()
        report = lake.fsck(deep=True)
        assert codes(report, "t") == {"log-damaged"}
        assert report.is_damaged
        plan = lake.plan_repair(report)
        assert plan.steps == ()
        assert ids(lake, "u") == IDS
    assert number_in(log) == number
    change_number(log, true)
    with lakebed.connect(path) as lake:
        assert ids(lake, "t") == IDS
        assert lake.fsck(deep=True).findings == ()


@pytest.mark.parametrize("folder", ["cache", "logs"])
def test_fsck_says_that_a_table_is_of_a_newer_release_and_checks_and_mends_the_others(
    path: Path, folder: str
) -> None:
    newer = file_of(path, folder)
    make_newer(newer)
    before = newer.read_bytes()
    change_number(file_of(path, "cache", "u"), -5)
    with lakebed.connect(path) as lake:
        with pytest.raises(NewerFormatError):
            ids(lake, "t")
        report = lake.fsck(deep=True)
        assert (codes(report, "t"), codes(report, "u")) == ({"table-newer"}, {"cache-damaged"})
        assert report.is_newer
        (done,) = lake.repair(lake.plan_repair(report))
        assert (done.step.about, done.problem) == ("u", "")
        report = lake.fsck(deep=True)
        assert (codes(report, "u"), report.is_damaged) == (set(), False)
    assert newer.read_bytes() == before
    assert not list(newer.parent.glob("*.damaged-*")), "it is the newer release's own"


def test_the_log_of_a_newer_release_without_a_name_ends_no_check(path: Path) -> None:
    log = file_of(path, "logs", "nameless")
    with sqlite3.connect(path / "tables.sqlite") as connection:
        assert connection.execute("DELETE FROM name WHERE name = 'nameless'").rowcount == 1
    connection.close()
    make_newer(log)
    with lakebed.connect(path) as lake:
        report = lake.fsck()
        assert (report.tables, codes(report, log.stem)) == (2, {"table-newer"})
        assert ids(lake, "t") == ids(lake, "u") == IDS
