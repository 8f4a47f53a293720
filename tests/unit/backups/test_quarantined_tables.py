"""A table in quarantine is left out of backups, which is no failure; what a backup holds of it
stays."""

from pathlib import Path

import pytest

import lakebed
from lakebed.lake import Lake
from tests.unit.tables.lakes import SCHEMA, ids, rows

NAMES = ("aside", "whole")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A lake of two tables, that was copied once, and written to since."""
    with lakebed.connect(tmp_path / "lake") as lake:
        for name in NAMES:
            lake.create_table(name, SCHEMA).ingest(rows(["1"]))
        lake.backup(tmp_path / "backup")
        for name in NAMES:
            lake.table(name).ingest(rows(["2"]))
    return tmp_path / "lake"


def damage_the_log(path: Path, lake: Lake, name: str) -> None:
    (path / "logs" / f"{lake._app.catalog.entry(name).id}.sqlite").write_bytes(b"\0" * 8_192)


def test_it_is_left_out_and_its_earlier_copy_stays(path: Path, tmp_path: Path) -> None:
    with lakebed.connect(path) as lake:
        damage_the_log(path, lake, "aside")
        lake.quarantine("aside")
        for _ in range(2):
            done = lake.backup(tmp_path / "backup", prune=True)
            assert (done.quarantined, done.failure, done.problems) == (("aside",), None, [])
            assert [table.table for table in done.tables] == ["whole"]
            assert done.only_in_copy == ()
    with lakebed.connect(tmp_path / "backup") as backup:
        assert backup.tables(online=True) == list(NAMES)
        assert ids(backup.table("aside")) == ["1"]
        assert ids(backup.table("whole")) == ["1", "2"]
        assert not backup.fsck(deep=True).is_damaged


def test_a_new_backup_does_without_it_until_it_is_brought_back(path: Path, tmp_path: Path) -> None:
    with lakebed.connect(path) as lake:
        lake.quarantine("aside")
        assert lake.backup(tmp_path / "new").quarantined == ("aside",)
        with lakebed.connect(tmp_path / "new") as backup:
            assert backup.tables() == ["whole"]
        lake.set_online("aside", online=True)
        assert lake.backup(tmp_path / "new").quarantined == ()
    with lakebed.connect(tmp_path / "new") as backup:
        assert ids(backup.table("aside")) == ["1", "2"]
