"""A restore that is killed leaves a lake that shows no table or all of them; the next goes on."""

import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lakebed.backends.faulty.crash_plan import Crash, CrashPlan, Moment
from lakebed.backends.local.object_store import LocalObjectStore
from lakebed.backends.local.sqlite_database import SqliteDatabase
from lakebed.bootstrap.local import open_local
from lakebed.lake import Lake
from lakebed.model.feeds.definitions import NamedDefinition
from lakebed.model.schema import schema_of

SCHEMA = schema_of(row_keys={"id": "string"}, values={"n": "int64"})
HINTS = ("usage.sqlite", "jobs.sqlite")
"""Stores of which any part may be missing."""
EFFECTS, EFFECTS_OF_NEWER = 13, 14
Shown = dict[str, tuple[bool, bool, list[str]]]
"""By table: whether it is online, and declared; the ids of its rows."""


def add(lake: Lake, name: str, *ids: str) -> None:
    lake.table(name).ingest(pa.table({"id": ids, "n": range(len(ids))}), job="-".join(ids))


@pytest.fixture(scope="module")
def backups(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two backups of a lake, the second of a later moment."""
    folder = tmp_path_factory.mktemp("backups")
    older, newer = folder / "older", folder / "newer"
    with Lake(open_local(folder / "lake")) as lake:
        table = lake.create_table("t", SCHEMA, split_points=["g"])
        add(lake, "t", "a", "h")
        for name in ("b", "c"):
            add(lake, "t", name)
            table.write_snapshot()
        table._snapshots().truncate(lake._app.logs.open(table._opened.id))
        add(lake, "t", "d")
        opened = lake.create_table("off", SCHEMA)._opened
        lake._app.registry.declare(opened.name, opened.id)
        lake.set_online("off", online=False)
        lake._app.feeds.definitions.put(definition("p"), 0)
        lake.backup(older)
        shutil.copytree(older, newer)
        add(lake, "t", "e")
        table.compact()
        add(lake, "off", "x")
        lake.rename_table("off", "was-off")
        lake.create_table("later", SCHEMA)
        add(lake, "later", "y")
        lake.backup(newer)
    return older, newer


def definition(name: str) -> NamedDefinition:
    return NamedDefinition(kind="policy", name=name, id=f"id{name}", body=b"{}")


@contextmanager
def counted(folder: Path, crashes: CrashPlan) -> Iterator[None]:
    """Let what is written below a folder be effects: objects that appear or go, commits."""
    root = folder.resolve()

    def objects_do(method: str) -> Any:  # noqa: ANN401 - a method of a store
        true = getattr(LocalObjectStore, method)

        def instead(self: LocalObjectStore, *args: object) -> object:
            if self._root != root:
                return true(self, *args)
            with crashes.effect(f"object {method}"):
                return true(self, *args)

        return instead

    def database_does(method: str) -> Any:  # noqa: ANN401 - a method of a database
        true = getattr(SqliteDatabase, method)

        @contextmanager
        def instead(self: SqliteDatabase) -> Iterator[object]:
            begun: AbstractContextManager[object] = true(self)
            if root not in self.path.resolve().parents or self.path.name in HINTS:
                with begun as given:
                    yield given
                return
            with crashes.effect(f"commit to {self.path.name}"), begun as given:
                yield given

        return instead

    with pytest.MonkeyPatch.context() as patch:
        for method in ("_link", "delete"):
            patch.setattr(LocalObjectStore, method, objects_do(method))
        for method in ("writing", "writing_once"):
            patch.setattr(SqliteDatabase, method, database_does(method))
        yield


def restore(path: Path, backup: Path, crashes: CrashPlan | None = None) -> bool:
    """Restore until it is killed. Returns whether it was."""
    crashes = crashes or CrashPlan()
    lake = Lake(open_local(path))
    try:
        with counted(path, crashes):
            assert lake.restore(backup).failure is None
    except Crash:
        return True
    finally:
        lake.close()
    return False


def shown(path: Path) -> Shown:
    """Return what a reader of a lake finds. Whoever sees a table sees it and its feeds whole."""
    with Lake(open_local(path, create=False)) as lake:
        entries = lake._app.registry.list()
        found: Shown = {
            entry.name: (
                entry.online,
                entry.declared,
                lake.table(entry.name).query(columns=["id"]).read_all()["id"].to_pylist(),
            )
            for entry in entries
        }
        if entries:
            findings = [one for e in entries for one in lake.fsck(e.name, deep=True).findings]
            assert not [one for one in findings if one.severity == "damage"], findings
            assert lake._app.feeds.definitions.get("policy", "p") is not None
    return found


OLDER: Shown = {"t": (True, False, ["a", "b", "c", "d", "h"]), "off": (False, True, [])}
NEWER: Shown = {
    "t": (True, False, ["a", "b", "c", "d", "e", "h"]),
    "was-off": (False, True, ["x"]),
    "later": (True, False, ["y"]),
}


def test_the_effects_are_counted(backups: tuple[Path, Path], tmp_path: Path) -> None:
    older, newer = backups
    for backup, wanted, count in ((older, OLDER, EFFECTS), (newer, NEWER, EFFECTS_OF_NEWER)):
        crashes = CrashPlan()
        assert not restore(tmp_path / "new", backup, crashes)
        assert shown(tmp_path / "new") == wanted
        assert len(crashes.effects) == count, crashes.effects


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("at", range(1, EFFECTS + 1))
def test_killed_at_any_effect_a_restored_lake_shows_no_table_or_all_and_the_next_goes_on(
    backups: tuple[Path, Path], tmp_path: Path, at: int, moment: Moment
) -> None:
    new = tmp_path / "new"
    assert restore(new, backups[0], CrashPlan(at, moment))
    assert shown(new) in ({}, OLDER)
    assert not restore(new, backups[0])
    assert shown(new) == OLDER


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("at", range(1, EFFECTS_OF_NEWER + 1))
def test_killed_on_the_way_to_a_newer_backup_each_table_is_of_one_of_the_two(
    backups: tuple[Path, Path], tmp_path: Path, at: int, moment: Moment
) -> None:
    new = tmp_path / "new"
    restore(new, backups[0])
    assert restore(new, backups[1], CrashPlan(at, moment))
    found = shown(new)
    assert found["t"] in (OLDER["t"], NEWER["t"])
    assert set(found) in ({"t", "off"}, set(NEWER))
    assert not restore(new, backups[1])
    assert shown(new) == NEWER
