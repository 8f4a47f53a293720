"""Settings that change, and what is told of it; a table that is cleared (H16)."""

import pytest

import lakebed
from lakebed.backends.system.installed_steps import StepsBesideUs
from lakebed.errors import GenerationError, InvalidError, TableMissingError
from lakebed.statestore.log_entries.table_changes import ChangeSettings, Clear
from lakebed.statestore.open_table import OpenTable, Start, start_of
from lakebed.tables import change_table
from tests.unit.tables.lakes import SCHEMA, ids, rows, stream


def leaves(lake: lakebed.Lake) -> int:
    (status,) = lake.status("trips")
    return status.leaves


def test_changed_settings_are_those_of_all_who_work_on_the_table(
    lake: lakebed.Lake, table: lakebed.Table
) -> None:
    after = table.change_settings(leaf_rows_max=10, compaction_strategy="basic")
    assert (after.leaf_rows_max, after.compaction_strategy) == (10, "basic")
    assert lake.table("trips").settings == after
    assert table.change_settings(leaf_rows_max=11).compaction_strategy == "basic"
    table.ingest(rows(f"{n:03d}" for n in range(30)))
    assert lake.run().leaves_split > 0


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({}, "no setting to change"),
        ({"leaf_rows": 5}, "no such setting"),
        ({"self": 5}, "no such setting"),
        ({"leaf_rows_max": 1}, "not a value"),
        ({"leaf_rows_max": "many", "size_ratio": 4}, "not a value"),
        ({"leaf_rows_max": "many", "size_rati": 4}, "several settings.*leaf_rows_max.*size_rati"),
        ({"job_files_max": 3}, "would merge nothing"),
        ({"size_ratio": 12}, "would merge nothing"),
        ({"job_files_max": 5, "size_ratio": 5}, "would merge nothing"),
    ],
)
def test_a_change_of_settings_that_cannot_be_changes_nothing(
    table: lakebed.Table, changes: dict[str, object], says: str
) -> None:
    before = table.settings, table.history()
    with pytest.raises(InvalidError, match=says) as raised:
        table.change_settings(**changes)
    assert raised.value.hint
    assert (table.settings, table.history()) == before


def test_the_history_tells_what_was_changed_and_when(table: lakebed.Table) -> None:
    table.change_settings(size_ratio=4)
    table.ingest(rows("a"))
    table.clear()
    table.clear(split_points=["g", "p"])
    found = table.history()
    assert found.since == 1
    assert [(c.number, c.what, dict(c.settings), c.leaves) for c in found.changes] == [
        (1, "created", {}, 2),
        (2, "settings", {"size_ratio": 4}, None),
        (4, "cleared", {}, None),
        (5, "cleared", {}, 3),
    ]
    assert sorted(c.at for c in found.changes) == [c.at for c in found.changes]


def test_the_history_says_from_where_on_it_is_kept(
    lake: lakebed.Lake, table: lakebed.Table
) -> None:
    for ratio in (4, 5, 6):
        table.change_settings(size_ratio=ratio)
    lake._app.logs.open(table._opened.id).truncate(table.history().changes[2].number)
    found = table.history()
    assert found.since == 3
    assert [dict(c.settings) for c in found.changes] == [{"size_ratio": 5}, {"size_ratio": 6}]


def test_a_cleared_table_keeps_its_partitions_or_gets_new_ones(
    lake: lakebed.Lake, table: lakebed.Table
) -> None:
    table.ingest(rows("az"))
    table.clear()
    assert (ids(table), leaves(lake)) == ([], 2)
    table.ingest(rows("by"))
    table.clear(split_points=["g", "p"])
    assert (ids(table), leaves(lake)) == ([], 3)
    table.ingest(rows("cx"))
    assert ids(table) == ["c", "x"]
    table.clear(split_points=[])
    assert (ids(table), leaves(lake)) == ([], 1)
    assert lake.fsck().findings == ()


def test_new_split_points_that_cannot_be_leave_the_table_as_it_was(
    lake: lakebed.Lake, table: lakebed.Table
) -> None:
    table.ingest(rows("az"))
    for points in (["p", "g"], [5], "g"):
        with pytest.raises(InvalidError):
            table.clear(split_points=points)
    assert (ids(table), leaves(lake)) == (["a", "z"], 2)


def test_an_ingest_that_meets_a_clear_is_refused_and_can_be_sent_again(
    lake: lakebed.Lake, table: lakebed.Table
) -> None:
    other = lake.table("trips")
    with pytest.raises(GenerationError, match="cleared"):
        table.ingest(stream(["a"], ["b"], other.clear), job="one")
    assert ids(table) == []
    assert not table.ingest(stream(["a"], ["b"], list), job="one").repeated
    assert ids(table) == ["a", "b"]


def test_a_reader_of_the_version_before_goes_on_to_its_end(table: lakebed.Table) -> None:
    table.ingest(rows("az"))
    reader = table.query(columns=["id"])
    first = reader.read_next_batch()
    table.clear()
    found = first.column("id").to_pylist() + reader.read_all().column("id").to_pylist()
    assert found == ["a", "z"]


def test_a_clear_just_before_does_no_harm(
    table: lakebed.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, own = table._opened, OpenTable.own
    cleared: list[int] = []

    def after_a_clear(self: OpenTable, start: Start, *changes: object) -> object:
        if not cleared:
            cleared.append(self.head.commit(own(self, start, Clear())))
        return own(self, start, *changes)  # type: ignore[arg-type]  # passed on as it came

    monkeypatch.setattr(OpenTable, "own", after_a_clear)
    change_table.change_settings(opened, {"size_ratio": 9}, StepsBesideUs())
    assert cleared
    assert table.settings.size_ratio == 9


def test_a_dropped_table_is_not_changed(lake: lakebed.Lake) -> None:
    table = lake.create_table("gone", SCHEMA)
    lake.drop_table("gone")
    with pytest.raises(TableMissingError):
        table.change_settings(size_ratio=4)
    with pytest.raises(TableMissingError):
        table.clear()


def test_settings_that_fit_together_are_changed_together(table: lakebed.Table) -> None:
    after = table.change_settings(job_files_max=3, size_ratio=2)
    assert (after.job_files_max, after.size_ratio) == (3, 2)
    after = table.change_settings(compaction_strategy="basic", size_ratio=9)
    assert (after.job_files_max, after.size_ratio) == (3, 9)


def test_a_table_whose_settings_never_fitted_can_have_others_changed(table: lakebed.Table) -> None:
    opened = table._opened
    with opened.head.reading() as state:
        start = start_of(state)
    opened.head.commit(opened.own(start, ChangeSettings({"job_files_max": 2})))
    assert table.change_settings(leaf_rows_max=10).job_files_max == 2
    with pytest.raises(InvalidError, match="would merge nothing"):
        table.change_settings(size_ratio=2)


def test_a_table_is_not_cleared_to_a_leaf_that_no_key_reaches(table: lakebed.Table) -> None:
    with pytest.raises(InvalidError, match="no key lies below a split point"):
        table.clear(split_points=["", "p"])
    assert len(table.history().changes) == 1
