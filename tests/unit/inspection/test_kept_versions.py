"""fsck says when a version that is kept cannot be read, and what may be done then."""

import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from lakebed.bootstrap.local import open_local
from lakebed.errors import UnavailableError
from lakebed.inspection.check_kept import CheckKept
from lakebed.inspection.findings import Finding
from lakebed.lake import Lake
from lakebed.model.names import Micros, TransactionNumber
from lakebed.model.paths import snapshot_of
from lakebed.statestore.log_entries.version_changes import BeginFollowing, PinVersion
from lakebed.statestore.open_table import start_of
from lakebed.statestore.table_state.state import TableState
from lakebed.statestore.write_snapshot import truncate_log
from tests.unit.inspection.damageable_lakes import DamageableDirectory
from tests.unit.inspection.damages import flipped, refuse, unpacked
from tests.unit.inspection.lakes import SCHEMA, copied, fsck, rows

LONG = Micros(1 << 60)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake with a tag and a pin on a version to which the log no longer leads."""
    path = tmp_path_factory.mktemp("kept") / "whole"
    with Lake(open_local(path)) as lake:
        table = lake.create_table("t", SCHEMA)
        number = table.ingest(rows(0, 50), job="a").number
        table.tag("then", as_of=number)
        opened = table._opened
        with opened.head.reading() as state:
            start = start_of(state)
        opened.head.commit(opened.own(start, PinVersion("reader", number, LONG)))
        assert table.tag("edge").number == opened.head.state.head().number
        empty_log(lake)
    return path


def empty_log(lake: Lake) -> None:
    """Two snapshots with an entry between, and no log below the first."""
    opened, app = lake["t"]._opened, lake._app
    snapshots = app.heads.snapshots(opened.id)
    for seed in range(2):
        lake["t"].ingest(rows(seed, 10), job=f"more-{seed}")
        with opened.head.reading() as state:
            snapshots.write(state)
    assert truncate_log(opened, snapshots, app.logs.open(opened.id))


@pytest.fixture
def lake(whole: Path, tmp_path: Path) -> Iterator[DamageableDirectory]:
    path = copied(whole, tmp_path / "lake")
    yield DamageableDirectory(path)
    shutil.rmtree(path)


def snapshot_of_tag(lake: DamageableDirectory) -> str:
    """Return the oldest snapshot: the others are the log's."""
    first, *others = sorted(lake.paths("snapshots/"), key=number_of)
    assert len(others) >= 2
    return first


def number_of(path: str) -> int:
    found = snapshot_of(path)
    assert found is not None
    return found[0]


def flip(lake: DamageableDirectory, path: str) -> None:
    body = changed = lake.read(path)
    while unpacked(changed) == unpacked(body):
        changed = flipped(body, random.Random(len(changed)))
    lake.write(path, changed)


def lost(lake: DamageableDirectory, *, deep: bool) -> list[Finding]:
    found = fsck(lake.path, deep=deep).findings
    assert {one.code for one in found} <= {"version-lost"}
    return list(found)


@pytest.mark.parametrize("deep", [False, True])
def test_whole_versions_have_no_finding(lake: DamageableDirectory, deep: bool) -> None:
    assert not lost(lake, deep=deep)


def test_a_damaged_snapshot_of_a_tag_is_found_by_a_deep_look(lake: DamageableDirectory) -> None:
    path = snapshot_of_tag(lake)
    flip(lake, path)
    with Lake(open_local(lake.path)) as opened, pytest.raises(UnavailableError, match="--deep"):
        opened["t"].query(as_of="then").read_all()
    assert not lost(lake, deep=False)
    found = lost(lake, deep=True)
    assert {one.facts["keeper"] for one in found} == {"tag then", "pin reader"}
    assert all(path in str(one.facts["problem"]) for one in found)
    assert all(one.severity == "damage" and "drop" in one.safe for one in found)


def test_a_snapshot_of_a_tag_that_is_gone_is_found_by_any_look(lake: DamageableDirectory) -> None:
    lake.remove(snapshot_of_tag(lake))
    assert {one.facts["problem"] for one in lost(lake, deep=False)} == {"its snapshot is gone"}


def test_the_last_version_that_the_log_does_not_lead_to_needs_its_snapshot(
    lake: DamageableDirectory,
) -> None:
    first, edge, begin, *_ = sorted(lake.paths("snapshots/"), key=number_of)
    assert number_of(edge) == number_of(begin) - 1
    lake.remove(edge)
    assert [one.facts["keeper"] for one in lost(lake, deep=False)] == ["tag edge"]
    lake.remove(first)
    assert len(lost(lake, deep=False)) == 3


def test_a_dropped_tag_needs_no_snapshot(lake: DamageableDirectory) -> None:
    flip(lake, snapshot_of_tag(lake))
    with Lake(open_local(lake.path)) as opened:
        opened["t"].drop_tag("then")
    assert {one.facts["keeper"] for one in lost(lake, deep=True)} == {"pin reader"}


def test_a_tag_that_is_dropped_meanwhile_is_not_lost(
    lake: DamageableDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    flip(lake, snapshot_of_tag(lake))
    run = CheckKept.run

    def dropped_meanwhile(self: CheckKept, state: TableState) -> Iterator[Finding]:
        yield from run(self, state)
        with Lake(open_local(lake.path)) as opened:
            opened["t"].drop_tag("then")

    monkeypatch.setattr(CheckKept, "run", dropped_meanwhile)
    assert {one.facts["keeper"] for one in lost(lake, deep=True)} == {"pin reader"}


def test_a_tag_that_the_log_leads_to_needs_no_snapshot(lake: DamageableDirectory) -> None:
    with Lake(open_local(lake.path)) as opened:
        opened["t"].tag("newest")
        opened["t"].ingest(rows(7, 3), job="later")
    assert not lost(lake, deep=True)


def test_a_follower_that_the_log_does_not_reach_back_to_is_found(
    lake: DamageableDirectory,
) -> None:
    with Lake(open_local(lake.path)) as opened:
        table = opened["t"]._opened
        with table.head.reading() as state:
            start, number = start_of(state), state.head().number
        follow = BeginFollowing("mirror", TransactionNumber(number), LONG)
        table.head.commit(table.own(start, follow))
        empty = opened._app.heads.snapshots(table.id)
        for seed in range(2):
            opened["t"].ingest(rows(seed, 3), job=f"last-{seed}")
            with table.head.reading() as state:
                empty.write(state)
        assert not lost(lake, deep=False)
        empty.truncate(opened._app.logs.open(table.id))  # without a look at what is kept
    found = {str(one.facts["keeper"]): one.facts["problem"] for one in lost(lake, deep=False)}
    assert found["follower mirror"] == "the log begins later"


def test_a_follower_needs_the_state_at_its_own_number(lake: DamageableDirectory) -> None:
    with Lake(open_local(lake.path)) as opened:
        table, app = opened["t"]._opened, opened._app
        with table.head.reading() as state:
            start, number = start_of(state), state.head().number
        table.head.commit(table.own(start, BeginFollowing("mirror", number, LONG)))
        for begin, is_lost in ((number, False), (number + 1, True)):
            check = CheckKept(
                table.name,
                app.heads.snapshots(table.id),
                oldest=begin,
                good=[TransactionNumber(begin)],
                deep=False,
            )
            with table.head.reading() as state:
                lost_keepers = [str(one.facts["keeper"]) for one in check.run(state)]
            assert ("follower mirror" in lost_keepers) == is_lost


def test_other_damage_is_mended_beside_a_lost_version(lake: DamageableDirectory) -> None:
    flip(lake, snapshot_of_tag(lake))
    lake.cache.write_bytes(b"no database" * 1_000)
    app = open_local(lake.path)
    try:
        findings = app.inspection.fsck().run(deep=True).findings
        plan = app.inspection.repair().plan(findings)
    finally:
        app.close()
    assert [one.code for one in plan.left] == ["version-lost"]
    assert [step.action for step in plan.steps] == ["rebuild-cache"]


def test_a_version_whose_snapshot_is_refused_is_lost_and_the_rest_is_checked(
    lake: DamageableDirectory,
) -> None:
    refuse(lake.path / "objects" / snapshot_of_tag(lake))
    report = fsck(lake.path)
    assert {one.code for one in report.findings} == {"version-lost"}
    for one in report.findings:
        assert str(one.facts["problem"]).startswith("its snapshot cannot be read: ")
    assert report.files
