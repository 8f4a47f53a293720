"""Ranges of whole keys are deleted at once, and what says how many rows went is right."""

from typing import Any

import pyarrow.compute as pc
import pytest

import lakebed
from lakebed.deletes import drop_ranges
from lakebed.errors import FormatGateError, InvalidError, JobIdReusedError
from lakebed.model.formats import Formats
from lakebed.sorted_files import parquet_files
from lakebed.statestore.open_table import OpenTable
from tests.unit.deletes.conftest import SCHEMA


def keys(table: lakebed.Table) -> list[tuple[str, int]]:
    found = table.to_arrow(columns=["city", "day"])
    return list(zip(found["city"].to_pylist(), found["day"].to_pylist(), strict=True))


ALL = [(city, day) for city in "aemx" for day in range(10)]


@pytest.mark.parametrize(
    ("asked", "gone"),
    [
        ({"keys": ["a"]}, lambda c, _: c == "a"),
        ({"keys": [("a", 3)]}, lambda c, d: (c, d) == ("a", 3)),
        (
            {"keys": [("a", 3), ("x", 9), "m"]},
            lambda c, d: (c, d) in {("a", 3), ("x", 9)} or c == "m",
        ),
        ({"ranges": {"city": ("b", "n")}}, lambda c, _: "b" <= c < "n"),
        ({"ranges": {"city": (None, "m")}}, lambda c, _: c < "m"),
        ({"ranges": [{"city": ("a", "b")}, {"city": ("x", None)}]}, lambda c, _: c in "ax"),
        (
            {"ranges": {"city": lakebed.Range("e", "e", max_inclusive=True), "day": (2, 5)}},
            lambda c, d: c == "e" and 2 <= d < 5,
        ),
        (
            {"ranges": {"city": lakebed.Range("e", "e", max_inclusive=True), "day": (7, None)}},
            lambda c, d: c == "e" and d >= 7,
        ),
        ({"keys": ["nowhere"]}, lambda *_: False),
        ({"keys": []}, lambda *_: False),
        ({"all": True}, lambda *_: True),
        ({"where": "city = 'a'"}, lambda c, _: c == "a"),
        ({"where": lakebed.field("city").is_in(["a", "x"])}, lambda c, _: c in "ax"),
        ({"where": pc.field("city") >= "m"}, lambda c, _: c >= "m"),
        ({"where": "city = 'e' and day >= 7"}, lambda c, d: c == "e" and d >= 7),
        ({"where": "not (city < 'b' or city like 'x%')"}, lambda c, _: c in "em"),
        ({"keys": ["a"], "where": "day between 2 and 4"}, lambda c, d: c == "a" and 2 <= d <= 4),
        ({"where": "city = 'e' and city = 'm'"}, lambda *_: False),
    ],
)
def test_just_the_rows_asked_for_go_by_one_entry(
    table: lakebed.Table,
    asked: dict[str, Any],
    gone: Any,  # noqa: ANN401 - as given
) -> None:
    before = table.state().number
    done = table.delete(**asked)
    left = [key for key in ALL if not gone(*key)]
    assert keys(table) == left
    assert (done.rows, done.exact, done.repeated) == (40 - len(left), True, False)
    assert table.state().number == done.number == before + (len(left) < 40)
    assert table.count() == len(left)
    assert table.delete(**asked).rows == 0


def test_rows_of_ranges_are_counted_without_putting_them_in_order(
    table: lakebed.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.change_processing(lakebed.Processing(filter=lakebed.field("n") < 9))

    def merge(*_: object) -> None:
        raise AssertionError("rows were put in order")

    monkeypatch.setattr(parquet_files, "_merged", merge)
    assert table.delete(ranges={"city": ("b", None)}).rows == 27


@pytest.mark.parametrize(
    ("where", "gone"),
    [
        ("city = 'e' and n >= 7", lambda c, d: c == "e" and d >= 7),
        ("city = 'e' or n = 2", lambda c, d: c == "e" or d == 2),
        ("city like 'a%' and city not like '%b'", lambda c, _: c == "a"),
        ("day = 3", lambda _, d: d == 3),
        ("city <= 'e' and day != 3", lambda c, d: c <= "e" and d != 3),
    ],
)
def test_a_test_that_says_more_than_ranges_of_whole_keys_drops_none(
    table: lakebed.Table,
    monkeypatch: pytest.MonkeyPatch,
    where: str,
    gone: Any,  # noqa: ANN401 - as given
) -> None:
    def run(*_: object) -> None:
        raise AssertionError("ranges were dropped")

    monkeypatch.setattr(drop_ranges.DropRanges, "run", run)
    left = [key for key in ALL if not gone(*key)]
    assert table.delete(where=where).rows == 40 - len(left)
    assert keys(table) == left


def test_boxes_that_are_too_many_to_be_met_exactly_drop_no_range(lake: lakebed.Lake) -> None:
    schema = lakebed.schema_of(row_keys={"k": "int64", "m": "int64"})
    table = lake.create_table("numbers", schema)
    table.ingest([{"k": k, "m": 0} for k in range(12)])
    assert table.delete(keys=list(range(6_000)), where="k in (3, 9)").rows == 2
    assert table.count() == 10


def test_the_ends_of_a_key_s_type_are_ends(lake: lakebed.Lake) -> None:
    table = lake.create_table("numbers", lakebed.schema_of(row_keys={"k": "int32", "m": "int32"}))
    least, most = -(1 << 31), (1 << 31) - 1
    table.ingest([{"k": k, "m": m} for k in (least, 0, most) for m in (least, 0, most)])
    assert table.delete(keys=[(0, most)]).rows == 1
    assert table.delete(ranges={"k": (0, None)}).rows == 5
    assert table.delete(keys=[(least, least)]).rows == 1
    assert table.to_arrow().to_pylist() == [{"k": least, "m": 0}, {"k": least, "m": most}]
    assert table.delete(keys=[most]).rows == 0
    table.ingest([{"k": most, "m": most}])
    assert table.delete(keys=[(most, most)]).rows == 1
    assert table.count() == 2
    assert len(table.split_points) == len(set(table.split_points))


def test_the_tree_can_be_copied_afterwards(lake: lakebed.Lake, table: lakebed.Table) -> None:
    table.delete(keys=["e", ("x", 4)])
    copy = lake.create_table_from("copy", table.definition)
    assert copy.split_points == table.split_points


def test_deleted_rows_stay_away_when_files_are_merged(
    lake: lakebed.Lake, table: lakebed.Table
) -> None:
    table.delete(keys=["e"])
    table.compact()
    table.ingest([{"city": "e", "day": 100, "n": 1, "note": "new"}])
    table.compact()
    left = [key for key in ALL if key[0] != "e"]
    assert keys(table) == sorted([*left, ("e", 100)])


def test_the_version_before_goes_on_for_who_reads_it(table: lakebed.Table) -> None:
    reader = table.query()
    table.delete(all=True)
    assert reader.read_all().num_rows == 40


def test_rows_that_fold_are_counted_as_queries_show_them(lake: lakebed.Lake) -> None:
    table = lake.create_table(
        "latest", SCHEMA, processing=lakebed.Processing(latest=lakebed.Latest("n"))
    )
    for n in range(3):
        table.ingest([{"city": c, "day": 1, "n": n, "note": None} for c in "abc"])
    assert table.delete(keys=["b"]).rows == 1
    assert table.count() == 2


def test_the_same_request_is_done_once(table: lakebed.Table) -> None:
    done = table.delete(keys=["a"], job="erase a")
    table.ingest([{"city": "a", "day": 100, "n": 1, "note": "later"}])
    again = table.delete(keys=["a"], job="erase a")
    assert (again.number, again.repeated, again.rows) == (done.number, True, 0)
    assert table.count(keys=["a"]) == 1
    with pytest.raises(JobIdReusedError):
        table.delete(keys=["e"], job="erase a")
    assert table.delete(keys=["nowhere"], job="erase nothing").rows == 0
    assert table.delete(keys=["nowhere"], job="erase nothing").repeated


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"all": True, "keys": ["a"]},
        {"keys": "a"},
        {"keys": [("a", 1, 2)]},
        {"keys": [None]},
        {"ranges": {"n": (1, 2)}},
        {"ranges": {"city": ("z", "a")}},
        {"where": "n >"},
        {"where": lakebed.field("nothing") > 1},
        {"keys": ["a"], "job": ""},
    ],
)
def test_what_cannot_be_is_refused_and_nothing_goes(
    table: lakebed.Table, asked: dict[str, Any]
) -> None:
    before = table.state().number
    with pytest.raises(InvalidError) as raised:
        table.delete(**asked)
    assert raised.value.hint
    assert table.state().number == before


def test_a_lake_that_older_releases_work_on_refuses_and_says_what_to_do(
    table: lakebed.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table._opened.head, "formats", lambda: Formats(entry=5, state=3))
    with pytest.raises(FormatGateError, match="upgrade finish"):
        table.delete(keys=["a"])
    assert table.count() == 40


def test_rows_that_come_while_it_counts_are_counted_too(
    table: lakebed.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, come = drop_ranges._found, iter(range(2))

    def meanwhile(state: Any, opened: OpenTable, ranges: Any) -> Any:  # noqa: ANN401 - as given
        seen = found(state, opened, ranges)
        for n in come:
            monkeypatch.setattr(drop_ranges, "_found", found)
            _later.append(n)
            break
        return seen

    _later: list[int] = []
    monkeypatch.setattr(drop_ranges, "_found", meanwhile)
    counted = drop_ranges.DropRanges._counted

    def count(self: Any, opened: OpenTable, seen: Any) -> int:  # noqa: ANN401 - as given
        if _later:
            table.ingest([{"city": "a", "day": 50 + _later.pop(), "n": 1, "note": None}])
        return counted(self, opened, seen)

    monkeypatch.setattr(drop_ranges.DropRanges, "_counted", count)
    done = table.delete(keys=["a"])
    assert (done.rows, done.exact) == (11, True)
    assert table.count(keys=["a"]) == 0


def test_a_range_that_never_rests_is_deleted_and_counted_about(
    table: lakebed.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = drop_ranges.DropRanges._counted
    days = iter(range(50, 99))

    def count(self: Any, opened: OpenTable, seen: Any) -> int:  # noqa: ANN401 - as given
        rows = counted(self, opened, seen)
        table.ingest([{"city": "a", "day": next(days), "n": 1, "note": None}])
        return rows

    monkeypatch.setattr(drop_ranges.DropRanges, "_counted", count)
    done = table.delete(keys=["a"])
    assert (done.rows, done.exact) == (13, False)
    assert table.count(keys=["a"]) == 0
