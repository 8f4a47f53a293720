"""Iterators: their effect is seen by queries and kept by compaction; those that break their promise
leave no trace."""

from typing import Any

import pyarrow as pa
import pytest

from lakebed import IteratorUse, Lake, Processing, schema_of
from lakebed.errors import InvalidError, IteratorError, LakebedError, ObjectMissingError
from lakebed.processing.iterators import IteratorGuard
from lakebed.sorted_files.sorting.iterating import iterated

SCHEMA = schema_of(row_keys={"id": "string"}, values={"value": "int64"})
pytestmark = pytest.mark.usefixtures("installed")


def rows(*pairs: tuple[str, int]) -> pa.Table:
    return pa.table({"id": [k for k, _ in pairs], "value": [v for _, v in pairs]})


def pairs(table: pa.Table) -> list[tuple[str, int]]:
    return list(zip(table["id"].to_pylist(), table["value"].to_pylist(), strict=True))


def test_a_tables_iterator_is_seen_at_once_and_kept_by_compaction(lake: Lake) -> None:
    use = Processing(iterator=IteratorUse("one_a_key"))
    table = lake.create_table("t", SCHEMA, processing=use)
    table.ingest(rows(("b", 1), ("a", 5), ("b", 7)))
    table.ingest(rows(("b", 3), ("c", 2)))
    assert pairs(table.query().read_all()) == [("a", 5), ("b", 7), ("c", 2)]
    assert lake.status("t")[0].rows == 4
    table.compact()
    assert lake.status("t")[0].rows == 3
    assert pairs(table.query().read_all()) == [("a", 5), ("b", 7), ("c", 2)]
    assert pairs(table.query(keys=["b"]).read_all()) == [("b", 7)]


def test_an_iterator_of_a_query_is_the_last_step_and_nothing_is_kept(lake: Lake) -> None:
    table = lake.create_table("t", SCHEMA, split_points=["b"])
    table.ingest(rows(("b", 1), ("a", 5), ("b", 7), ("c", 2)))
    asked = ("top", {"limit": 5})
    assert pairs(table.query(iterator=asked).read_all()) == [("a", 5), ("b", 7)]
    assert table.query(iterator=asked, columns=["id"]).read_all().to_pydict() == {"id": ["a", "b"]}
    assert pairs(table.query(iterator=asked, limit=1).read_all()) == [("a", 5)]
    assert table.query().read_all().num_rows == 4


@pytest.mark.parametrize(
    ("how", "wanted"),
    [
        ("other columns", "other columns"),
        ("null", "null in a required field"),
        ("unsorted", "out of order"),
        ("no batch", "something else than record batches"),
        ("bytes", "not valid values"),
        ("raises", "RuntimeError: it went wrong"),
    ],
)
def test_a_broken_promise_is_told_and_no_file_is_written(lake: Lake, how: str, wanted: str) -> None:
    use = Processing(iterator=IteratorUse("wrong", {"how": how}))
    table = lake.create_table("t", SCHEMA, processing=use)
    with pytest.raises(IteratorError, match=wanted):
        table.ingest(rows(("a", 1), ("b", 1)))
    assert lake.status("t")[0].files == 0
    assert not [p for p in lake._app.objects.list("tables/") if "/files/" in p.path]


def test_an_iterator_stays_inside_of_its_leaf(lake: Lake) -> None:
    use = Processing(iterator=IteratorUse("wrong", {"how": "elsewhere"}))
    table = lake.create_table("t", SCHEMA, processing=use, split_points=["m"])
    with pytest.raises(IteratorError, match="outside its range"):
        table.ingest(rows(*((f"a{n}", n) for n in range(9))))


@pytest.mark.parametrize(
    ("use", "kind", "wanted"),
    [
        (("tpo", {}), InvalidError, "did you mean 'top'"),
        (("lost", {}), IteratorError, "ModuleNotFoundError"),
        (("not_an_iterator", {}), IteratorError, "nothing to call"),
        (("needs_an_option", {}), IteratorError, "KeyError: 'option'"),
    ],
)
def test_one_that_cannot_be_loaded_is_refused_before_anything_is_done(
    lake: Lake, use: tuple[str, dict[str, Any]], kind: type[LakebedError], wanted: str
) -> None:
    with pytest.raises(kind, match=wanted):
        lake.create_table("t", SCHEMA, processing=Processing(iterator=IteratorUse(*use)))
    assert lake.tables() == []
    table = lake.create_table("t", SCHEMA)
    with pytest.raises(kind, match=wanted):
        table.query(iterator=use)


def test_what_goes_wrong_with_its_input_is_told_though_it_hides_that() -> None:
    def input_() -> Any:  # noqa: ANN401  batches, and an error
        yield pa.RecordBatch.from_pydict({"id": ["a"], "value": [1]})
        raise ObjectMissingError("gone")

    with pytest.raises(ObjectMissingError):
        list(iterated(SCHEMA, input_(), IteratorUse("swallows")))


def test_our_own_errors_pass_the_guard_as_they_are() -> None:
    with pytest.raises(ObjectMissingError), IteratorGuard("x"):
        raise ObjectMissingError("gone")
