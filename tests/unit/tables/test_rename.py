"""A table gets another name, and stays what it is (row 14, H32)."""

from pathlib import Path

import pytest

import lakebed
from lakebed.errors import InvalidError, TableExistsError, TableMissingError
from lakebed.model.names import TableName
from tests.unit.tables.lakes import SCHEMA, ids, rows


def test_a_renamed_table_has_the_same_rows_and_nothing_was_copied(
    lake: lakebed.Lake, table: lakebed.Table, tmp_path: Path
) -> None:
    def objects() -> dict[str, int]:
        found = (tmp_path / "lake" / "objects").rglob("*")
        return {str(path): path.stat().st_ino for path in found if path.is_file()}

    table.ingest(rows("az"))
    before = objects()
    renamed = lake.rename_table("trips", "rides")
    assert (renamed.name, ids(renamed)) == ("rides", ["a", "z"])
    assert lake.tables() == ["rides"]
    assert objects() == before
    with pytest.raises(TableMissingError):
        lake.table("trips")
    assert not lake.fsck(deep=True).findings


def test_whoever_has_a_table_open_goes_on_when_it_is_renamed(
    lake: lakebed.Lake, table: lakebed.Table
) -> None:
    table.ingest(rows("a"))
    lake.rename_table("trips", "rides")
    table.ingest(rows("b"))
    assert ids(lake.table("rides")) == ["a", "b"]
    assert table.compact().jobs_done > 0


def test_the_old_name_is_free(lake: lakebed.Lake, table: lakebed.Table) -> None:
    table.ingest(rows("a"))
    lake.rename_table("trips", "rides")
    lake.create_table("trips", SCHEMA).ingest(rows("b"))
    assert (ids(lake.table("trips")), ids(lake.table("rides"))) == (["b"], ["a"])
    lake.drop_table("rides")
    assert lake.tables() == ["trips"]


def test_a_rename_that_cannot_be_changes_nothing(lake: lakebed.Lake, table: lakebed.Table) -> None:
    lake.create_table("other", SCHEMA)
    for old, new, kind in (
        ("trips", "other", TableExistsError),
        ("tripps", "rides", TableMissingError),
        ("trips", "Not a name", InvalidError),
    ):
        with pytest.raises(kind) as raised:
            lake.rename_table(old, new)
        assert raised.value.hint
        assert lake.tables() == ["other", "trips"]


def test_a_table_that_is_renamed_while_it_is_dropped_leaves_no_name(
    lake: lakebed.Lake, table: lakebed.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    registry = lake._app.registry
    release = registry.release

    def renamed_before(name: object, id_: object) -> None:
        if name == "trips":
            registry.rename(TableName("trips"), TableName("rides"), table._opened.id)
        release(name, id_)  # type: ignore[arg-type]  # passed on as it came

    monkeypatch.setattr(registry, "release", renamed_before)
    lake.drop_table("trips")
    assert lake.tables() == []
