import random
import shutil
from pathlib import Path

import pytest

import lakebed
from lakebed.backends.memory import VirtualClock
from lakebed.backends.system import SystemClock
from lakebed.bootstrap.local import open_local
from lakebed.errors import CorruptError, LakebedError
from lakebed.inspection.findings import KINDS, finding
from lakebed.inspection.repair import DOES, RECOVERED, plan_repair
from lakebed.lake import Lake
from lakebed.model.names import MICROS_PER_SECOND, Micros
from tests.unit.inspection.damageable_lakes import DamageableDirectory
from tests.unit.inspection.damages import (
    DAMAGES,
    Damage,
    a_flipped_bit_in_a_snapshot,
    a_flipped_bit_in_the_log,
    a_name_gone,
    a_scrambled_cache,
    an_old_object,
    rows_spilled,
)
from tests.unit.inspection.lakes import build, copied, fsck

MENDED = {
    a_flipped_bit_in_a_snapshot,
    a_scrambled_cache,
    an_old_object,
    rows_spilled,
    a_name_gone,
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("repaired") / "whole"
    build(path)
    return path


def answers(path: Path) -> dict[str, object]:
    """What a reader gets of each table; of one that cannot be read, nothing."""
    with Lake(open_local(path)) as lake:
        given: dict[str, object] = {}
        for name in lake.tables():
            try:
                given[name] = lake.table(name).query().read_all()
            except LakebedError:
                given[name] = None
        return given


def contents(path: Path) -> dict[str, bytes]:
    kept = ("objects", "logs", "tables.sqlite", "cache")
    return {
        str(file.relative_to(path)): file.read_bytes()
        for part in kept
        for file in sorted([path / part, *(path / part).rglob("*")])
        if file.is_file() and not file.name.endswith(("-shm", "-wal"))
    }


def test_tables_whose_names_are_all_gone_are_no_missing_tables_and_get_new_names(
    whole: Path, tmp_path: Path
) -> None:
    expected = answers(whole)
    path = copied(whole, tmp_path / "lake")
    for file in path.glob("tables.sqlite*"):
        file.unlink()
    with Lake(open_local(path)) as lake:
        for _ in range(2):
            with pytest.raises(CorruptError, match="names of all tables are gone"):
                lake.table(next(iter(expected)))
            with pytest.raises(CorruptError, match="names of all tables are gone"):
                lake.create_table("new", lakebed.schema_of(row_keys={"id": "string"}))
        report = lake.fsck(deep=True)
        assert {"registry-damaged", "name-lost"} <= {one.code for one in report.findings}
        lake.repair(lake.plan_repair(report))
        assert lake.fsck(deep=True).findings == ()
        assert all(name.startswith(RECOVERED) for name in lake.tables())
    assert sorted(map(str, answers(path).values())) == sorted(map(str, expected.values()))


@pytest.mark.parametrize("damage", sorted(MENDED, key=lambda d: d.__name__))
def test_what_is_mended_is_clean_afterwards(whole: Path, tmp_path: Path, damage: Damage) -> None:
    expected = list(answers(whole).values())
    for seed in range(4):
        path = copied(whole, tmp_path / "lake")
        damage(DamageableDirectory(path), random.Random(seed))
        with Lake(open_local(path)) as lake:
            done = lake.repair(lake.plan_repair(lake.fsck(deep=True)))
            assert done
            assert not [one.problem for one in done if one.problem]
            assert lake.fsck(deep=True).findings == ()
        assert list(answers(path).values()) == expected
        shutil.rmtree(path)


@pytest.mark.parametrize(("damage", "_times"), DAMAGES, ids=lambda d: getattr(d, "__name__", ""))
def test_no_repair_makes_anything_worse(
    whole: Path, tmp_path: Path, damage: Damage, _times: int
) -> None:
    right = answers(whole)
    for seed in range(3):
        path = copied(whole, tmp_path / "lake")
        damage(DamageableDirectory(path), random.Random(seed))
        found, read = fsck(path), answers(path)
        with Lake(open_local(path)) as lake:
            plan = lake.plan_repair(found)
            problems = [one.problem for one in lake.repair(plan) if one.problem]
        left = {one.code for one in plan.left}
        assert {one.code for one in fsck(path).findings} <= left, problems
        for name, rows in answers(path).items():
            assert read.get(name) is None or rows in (read[name], right.get(name))
        shutil.rmtree(path)


def test_a_lake_with_a_damaged_log_is_left_as_it_is(whole: Path, tmp_path: Path) -> None:
    path = copied(whole, tmp_path / "lake")
    for damage in (a_flipped_bit_in_the_log, a_scrambled_cache, an_old_object):
        damage(DamageableDirectory(path), random.Random(3))
    with Lake(open_local(path)) as lake:
        plan = lake.plan_repair(lake.fsck())
        before = contents(path)
        assert plan.steps == ()
        assert {one.why for one in plan.left if one.code == "cache-damaged"} == {
            "the table has log-damaged"
        }
        assert lake.repair(plan) == []
    assert contents(path) == before


def test_a_cache_that_others_use_is_not_taken_from_them(whole: Path, tmp_path: Path) -> None:
    path = copied(whole, tmp_path / "lake")
    with Lake(open_local(path)) as other, Lake(open_local(path)) as lake:
        a_scrambled_cache(DamageableDirectory(path), random.Random(2))
        (done,) = lake.repair(lake.plan_repair(lake.fsck()))
        assert "another process has the lake open" in done.problem
        other.close()
        (done,) = lake.repair(lake.plan_repair(lake.fsck()))
        assert not done.problem
        assert lake.fsck().findings == ()


def test_a_repair_looks_again_before_it_deletes(whole: Path, tmp_path: Path) -> None:
    path = copied(whole, tmp_path / "lake")
    a_scrambled_cache(DamageableDirectory(path), random.Random(2))
    with Lake(open_local(path)) as lake:
        plan = lake.plan_repair(lake.fsck())
    a_flipped_bit_in_the_log(DamageableDirectory(path), random.Random(1))
    before = contents(path)
    with Lake(open_local(path)) as lake:
        (done,) = lake.repair(plan)
    assert "the log is not whole any more" in done.problem
    assert contents(path) == before


def test_a_table_without_its_name_is_found_again(whole: Path, tmp_path: Path) -> None:
    path = copied(whole, tmp_path / "lake")
    a_name_gone(DamageableDirectory(path), random.Random(1))
    later = VirtualClock(Micros(SystemClock().now() + 3 * 86_400 * MICROS_PER_SECOND))
    with Lake(open_local(path, clock=later)) as lake:
        assert lake._app.catalog.sweep_nameless() == 0
        plan = lake.plan_repair(lake.fsck())
        assert [step.action for step in plan.steps] == ["name-again"]
        lake.repair(plan)
        (name,) = lake.tables()
        assert name.startswith(RECOVERED)
        assert lake.table(name).query().read_all().num_rows == 1_460


def test_a_file_that_lost_bytes_is_left_to_people() -> None:
    plan = plan_repair([finding("file-damaged", table="t", path="x")])
    assert plan.steps == ()
    assert [(one.code, one.about) for one in plan.left] == [("file-damaged", "t")]


def test_a_file_is_brought_back_only_where_versions_are_kept() -> None:
    found = [finding("file-missing", table="t", path="x")]
    (left,) = plan_repair(found).left
    assert left.why == "its store keeps no old versions"
    (step,) = plan_repair(found, has_versions=True).steps
    assert step.paths == ("x",)
    broken = [*found, finding("log-damaged", table="t")]
    assert plan_repair(broken, has_versions=True).steps == ()


def test_every_repair_is_for_some_finding() -> None:
    assert {kind.repair for kind in KINDS.values()} - {None} == set(DOES)
