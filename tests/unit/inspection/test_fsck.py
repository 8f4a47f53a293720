import random
import shutil
from pathlib import Path

import pytest

from tests.unit.inspection.damageable_lakes import DamageableDirectory
from tests.unit.inspection.damages import DAMAGES, LOCAL_DAMAGES, Damage, LocalDamage, change, rows
from tests.unit.inspection.lakes import build, copied, fsck

MORE_OFTEN = 4
"""How often, times as often as in the quick test, each damage is planted in the slow one."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("inspected") / "whole"
    build(path)
    return path


def test_a_clean_lake_has_no_finding(whole: Path, tmp_path: Path) -> None:
    path = copied(whole, tmp_path / "lake")
    for deep in (False, True):
        report = fsck(path, deep=deep)
        assert report.findings == ()
        assert report.tables == 1
        assert report.files > 3
    shutil.rmtree(path / "cache")
    assert fsck(path).findings == ()


def test_the_lake_that_is_damaged_has_something_of_everything(whole: Path) -> None:
    lake = DamageableDirectory(whole)
    for table in ("file_references", "jobs", "garbage", "pins", "commits"):
        assert rows(lake.cache, f"SELECT 1 FROM {table}"), table
    assert rows(lake.cache, "SELECT 1 FROM file_references WHERE NOT exact")
    assert lake.entries()[0][0] > 1
    assert len(lake.paths("snapshots/")) == 2


@pytest.mark.parametrize(("damage", "times"), DAMAGES, ids=lambda d: getattr(d, "__name__", ""))
def test_every_damage_is_found(whole: Path, tmp_path: Path, damage: Damage, times: int) -> None:
    for seed in range(times):
        check_found(whole, tmp_path / "lake", damage, seed)


@pytest.mark.parametrize(
    ("damage", "times"), LOCAL_DAMAGES, ids=lambda d: getattr(d, "__name__", "")
)
def test_what_is_refused_and_what_lies_in_the_way_is_found(
    whole: Path, tmp_path: Path, damage: LocalDamage, times: int
) -> None:
    for seed in range(times):
        check_found(whole, tmp_path / "lake", damage, seed)


@pytest.mark.slow
@pytest.mark.parametrize(("damage", "times"), DAMAGES, ids=lambda d: getattr(d, "__name__", ""))
def test_all_of_a_thousand_damages_are_found(
    whole: Path, tmp_path: Path, damage: Damage, times: int
) -> None:
    for seed in range(times, (1 + MORE_OFTEN) * times):
        check_found(whole, tmp_path / "lake", damage, seed)


def check_found(whole: Path, path: Path, damage: LocalDamage, seed: int) -> None:
    wanted = damage(DamageableDirectory(copied(whole, path)), random.Random(seed))
    found = {finding.code for finding in fsck(path).findings}
    assert found & wanted, f"seed {seed}: {found} instead of {wanted}"
    shutil.rmtree(path)


def test_damages_are_many() -> None:
    planted = sum(times for _, times in DAMAGES)
    assert planted >= 300
    assert planted * MORE_OFTEN >= 1_000


def test_what_a_killed_writer_left_of_an_object_is_found(whole: Path, tmp_path: Path) -> None:
    path = copied(whole, tmp_path / "lake")
    (path / "unfinished" / "99999999-0").write_bytes(b"half")
    assert [one.code for one in fsck(path).findings] == ["unfinished-upload"]


def test_bodies_of_a_log_are_no_strangers_among_the_objects(whole: Path, tmp_path: Path) -> None:
    lake = DamageableDirectory(copied(whole, tmp_path / "lake"))
    table = lake.paths("files/")[0].split("/")[1]
    body = f"{7:016x}-{7:032x}"
    lake.write(f"logs/{table}/{body}", b"x")
    assert fsck(lake.path).findings == ()
    strangers = [f"logs/{table}/{body}x", f"logs/{'0' * 32}/{body}"]
    for path in strangers:
        lake.write(path, b"x")
    found = {str(one.facts["path"]) for one in fsck(lake.path).findings}
    assert found == set(strangers)


@pytest.mark.parametrize("beginning", ["both snapshots", "the oldest entry"])
def test_a_log_without_its_beginning_is_not_taken_for_none(
    whole: Path, tmp_path: Path, beginning: str
) -> None:
    lake = DamageableDirectory(copied(whole, tmp_path / "lake"))
    for path in lake.paths("snapshots/"):
        lake.remove(path)
    code = "no-base"
    if beginning == "the oldest entry":
        log = next(lake.path.glob("logs/*.sqlite"))
        change(log, "UPDATE truncated SET below = 1")
        code = "log-gap"
    lake.drop_cache()
    codes = {one.code for one in fsck(lake.path).findings}
    assert code in codes
    assert not codes & {"name-without-log", "table-unreadable"}
