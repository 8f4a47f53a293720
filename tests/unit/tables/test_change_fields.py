"""Fields that are added, renamed, dropped and widened, while files of all ages are worked on."""

from typing import Any, Literal

import pyarrow as pa
import pytest

import lakebed
from lakebed.errors import ConflictError, InvalidError
from lakebed.ingest.sources import source_of
from lakebed.model.changes.field_changes import FieldChange
from lakebed.sorted_files.format.arrow_schema import arrow_schema
from lakebed.statestore.log_entries.table_changes import ChangeSchema
from lakebed.statestore.open_table import start_of

SCHEMA = lakebed.schema_of(
    row_keys={"id": "string"}, values={"n": "int8", "note": "string?", "fare": "float32?"}
)


@pytest.fixture
def trips(lake: lakebed.Lake) -> lakebed.Table:
    table = lake.create_table("trips", SCHEMA, settings={"leaf_rows_max": 4})
    table.ingest(old_rows("ab", n=1))
    return table


def old_rows(ids: str, n: int) -> pa.Table:
    columns = {"id": list(ids), "n": [n] * len(ids), "note": [f"note {i}" for i in ids]}
    columns["fare"] = [0.5] * len(ids)
    return pa.Table.from_pydict(columns, schema=arrow_schema(SCHEMA))


def take(table: lakebed.Table, *rows: dict[str, Any]) -> None:
    table.ingest(pa.Table.from_pylist(list(rows), schema=table.arrow_schema))


def found(
    table: lakebed.Table,
    **asked: Any,  # noqa: ANN401 - of several kinds
) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = table.query(**asked).read_all().to_pylist()
    return rows


def test_files_of_all_ages_read_and_merge_as_the_newest_schema(
    lake: lakebed.Lake, trips: lakebed.Table
) -> None:
    trips.add_field("tip", "float64?")
    take(trips, {"id": "c", "n": 2, "note": "c", "fare": 1.5, "tip": 9.0})
    trips.rename_field("fare", "price")
    trips.widen_field("price", "float64")
    trips.widen_field("n", "int32")
    trips.drop_field("note")
    take(trips, {"id": "d", "n": 1 << 20, "price": 0.1})
    wanted = [
        {"id": "a", "n": 1, "price": 0.5, "tip": None},
        {"id": "b", "n": 1, "price": 0.5, "tip": None},
        {"id": "c", "n": 2, "price": 1.5, "tip": 9.0},
        {"id": "d", "n": 1 << 20, "price": 0.1, "tip": None},
    ]
    assert found(trips) == wanted
    assert found(trips, keys=["c"], columns=["tip", "price"]) == [{"tip": 9.0, "price": 1.5}]
    assert lake.fsck(deep=True).findings == ()
    take(trips, *({"id": i, "n": 0, "price": 2.5} for i in "abcd"))
    lake.run()
    trips.compact()
    assert [row for row in found(trips) if row["n"]] == wanted
    assert lake.fsck(deep=True).findings == ()
    assert trips.query().schema.equals(trips.arrow_schema, check_metadata=True)


def test_a_field_of_a_dropped_name_never_shows_what_was_dropped(trips: lakebed.Table) -> None:
    trips.drop_field("note")
    trips.add_field("note", "string?")
    assert [row["note"] for row in found(trips)] == [None, None]
    trips.compact()
    assert [row["note"] for row in found(trips)] == [None, None]


def test_an_ingest_that_began_before_the_change_is_right(trips: lakebed.Table) -> None:
    def batches() -> Any:  # noqa: ANN401 - an iterator of batches
        yield from old_rows("c", n=3).to_batches()
        trips.change_fields(rename={"n": "note", "note": "n"}, drop=["fare"])
        yield from old_rows("d", n=4).to_batches()

    given = pa.RecordBatchReader.from_batches(arrow_schema(SCHEMA), batches())
    trips.ingest(given)
    assert found(trips) == [
        {"id": i, "note": n, "n": f"note {i}"} for i, n in zip("abcd", (1, 1, 3, 4), strict=True)
    ]


def test_a_reader_goes_on_with_the_schema_that_it_began_with(trips: lakebed.Table) -> None:
    reader = trips.query()
    trips.change_fields(drop=["n", "note"], rename={"fare": "n"})
    take(trips, {"id": "z", "n": 1.0})
    trips.compact()
    assert reader.read_all().to_pylist() == old_rows("ab", n=1).to_pylist()


@pytest.mark.parametrize("extra", ["refuse", "drop"])
def test_an_upload_with_an_old_name_is_told_the_new_one(
    trips: lakebed.Table, extra: Literal["refuse", "drop"]
) -> None:
    trips.rename_field("fare", "price")
    with pytest.raises(InvalidError) as raised:
        trips.ingest(old_rows("c", n=1), extra_columns=extra)
    assert "it was renamed to 'price'" in str(raised.value.hint)
    assert len(found(trips)) == 2


def test_columns_of_dropped_fields_are_extra_columns(trips: lakebed.Table) -> None:
    trips.drop_field("note")
    with pytest.raises(InvalidError) as raised:
        trips.ingest(old_rows("c", n=1))
    assert "this field was dropped" in str(raised.value.hint)
    trips.ingest(old_rows("c", n=1), extra_columns="drop")
    assert [row["id"] for row in found(trips)] == ["a", "b", "c"]


def test_a_query_with_an_old_name_is_told_the_new_one(trips: lakebed.Table) -> None:
    trips.change_fields(rename={"fare": "price", "id": "key"})
    for asked in ({"columns": ["fare"]}, {"ranges": {"id": ("a", "b")}}):
        with pytest.raises(InvalidError) as raised:
            trips.query(**asked)
        assert "it was renamed to" in str(raised.value.hint)
    assert [row["key"] for row in found(trips, ranges={"key": ("b", None)})] == ["b"]


def test_of_two_changes_at_once_one_is_refused(trips: lakebed.Table) -> None:
    opened, version = trips._opened, trips.schema.version
    change = ChangeSchema(version, (FieldChange("drop", 2, "n"),))
    other = ChangeSchema(version, (FieldChange("drop", 3, "note"),))
    with opened.head.reading() as state:
        start = start_of(state)
    first, second = opened.head.commit_group([opened.own(start, c) for c in (change, other)])
    assert isinstance(first, int)
    assert isinstance(second, ConflictError)
    assert [field.name for field in trips.schema.fields] == ["id", "note", "fare"]


def test_a_refused_change_changes_nothing(trips: lakebed.Table) -> None:
    before = trips.schema, trips.history()
    with pytest.raises(InvalidError, match="not a list"):
        trips.change_fields(drop="note")
    with pytest.raises(InvalidError, match="not a wider type"):
        trips.change_fields(drop=["note"], widen={"n": "bool"})
    assert (trips.schema, trips.history()) == before


def test_history_and_schema_tell_what_was_done(trips: lakebed.Table) -> None:
    trips.change_fields(add={"tip": "int8?"}, rename={"fare": "price"}, drop=["note"])
    (change,) = [change for change in trips.history().changes if change.what == "fields"]
    assert change.fields == ("drop note", "rename fare to price", "add tip: int8")
    (version,) = trips.schema.past
    assert (version.version, version.at) == (2, change.at)


def test_a_schema_of_a_changed_table_makes_a_new_table(
    lake: lakebed.Lake, trips: lakebed.Table
) -> None:
    schema = trips.rename_field("fare", "price")
    again = lakebed.schema_from_json(lakebed.schema_json(schema))
    copy = lake.create_table("copy", again)
    assert copy.schema.version == 1
    assert copy.schema.fields == schema.fields


def test_a_source_has_the_schema_of_when_it_was_made(trips: lakebed.Table) -> None:
    source = source_of(old_rows("c", n=1), trips.schema)
    trips.widen_field("n", "int64")
    trips._app.ingest.run(trips._opened, source)
    assert [row["n"] for row in found(trips)] == [1, 1, 1]
