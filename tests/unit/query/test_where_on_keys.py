"""What a predicate says of row keys spares reading just as keys and ranges do."""

from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import lakebed
from lakebed.lake import Lake
from lakebed.query.explanation import QueryExplanation
from lakebed.sorted_files.format import row_groups
from lakebed.sorted_files.writing import writer_options
from lakebed.table import Table

SCHEMA = lakebed.schema_of(
    row_keys={"id": "string", "day": "date32"}, sort_keys={"n": "int64"}, values={"v": "int64?"}
)
IDS = [f"{letter}{number:02}" for letter in "abcd" for number in range(50)]
DAYS = [date(2013, 1, day) for day in (1, 2)]
ROWS = [
    {"id": id_, "day": day, "n": n, "v": n % 7 if n else None}
    for n, id_ in enumerate(IDS)
    for day in DAYS
]
id_, day_ = pc.field("id"), pc.field("day")


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lake]:
    monkeypatch.setattr(writer_options, "PAGE_ROWS_MIN", 5)
    monkeypatch.setattr(writer_options, "PAGE_ROWS_MAX", 5)
    monkeypatch.setattr(row_groups, "ROW_GROUP_ROWS_MAX", 20)
    with lakebed.connect(tmp_path / "lake") as lake:
        yield lake


@pytest.fixture
def table(lake: Lake) -> Table:
    """Four leaves, two files in each."""
    table = lake.create_table(
        "t", SCHEMA, split_points=["b", "c", "d"], settings={"shared_file_rows_max": 0}
    )
    whole = pa.Table.from_pylist(ROWS, table.arrow_schema)
    for half in (0, 1):
        table.ingest(whole.filter(pc.equal(pc.bit_wise_and(whole["n"], 1), half)))
    return table


def read(explanation: QueryExplanation) -> dict[str, Any]:
    """Return what was read, without how long it took and what was in a cache."""
    counted = msgspec.to_builtins(explanation)
    caches = {"number", "milliseconds", "tails_cached", "pages_cached"}
    return {name: count for name, count in counted.items() if name not in caches}


KEY = ("b07", DAYS[1])
ALIKE: list[tuple[str, dict[str, Any], list[object]]] = [
    (
        "a whole key",
        {"keys": [KEY]},
        [
            "id = 'b07' and day = '2013-01-02'",
            (lakebed.field("id") == "b07") & (lakebed.field("day") == DAYS[1]),
            (id_ == "b07") & (day_ == DAYS[1]),
        ],
    ),
    ("the first of two", {"keys": ["b07"]}, ["id = 'b07'", id_ == "b07", "id like 'b07'"]),
    (
        "several keys",
        {"keys": ["a01", "b07", "d49"]},
        [
            "id in ('d49', 'b07', 'a01')",
            "id = 'a01' or id = 'b07' or not id <> 'd49'",
            id_.isin(["a01", "b07", "d49"]),
            pc.if_else(
                id_.is_valid(), id_.isin(["a01", "b07", "d49"]), pa.scalar(None, pa.bool_())
            ),
        ],
    ),
    (
        "a range",
        {"ranges": {"id": ("b48", "c02")}},
        [
            "id >= 'b48' and id < 'c02'",
            "not (id < 'b48' or id >= 'c02')",
            (id_ >= "b48") & (id_ < "c02"),
        ],
    ),
    ("a prefix", {"ranges": {"id": ("b0", "b1")}}, ["id like 'b0%'", pc.starts_with(id_, "b0")]),
    ("a key that is not there", {"keys": ["b99"]}, ["id = 'b99'", id_ == "b99"]),
    ("keys below all files", {"keys": ["A"]}, ["id = 'A'", id_ == "A"]),
]


@pytest.mark.parametrize(
    ("asked", "wheres"), [case[1:] for case in ALIKE], ids=[case[0] for case in ALIKE]
)
def test_a_predicate_reads_what_keys_and_ranges_read(
    table: Table, asked: dict[str, Any], wheres: list[object]
) -> None:
    rows = table.to_arrow(**asked)
    wanted = read(table.explain(**asked))
    for where in wheres:
        assert read(table.explain(where=where)) == wanted, where
        assert table.to_arrow(where=where).equals(rows)
        assert table.count(where=where) == rows.num_rows


NOTHING = [
    "id = 'a' and id = 'b'",
    "id is null",
    "id < 'a' and id > 'b'",
    "id between 'b' and 'a'",
    "not (day >= '2013-01-01' or day < '2013-01-01')",
    (id_ == "a") & (id_ == "b"),
    id_ == pa.scalar(None, pa.string()),
]


@pytest.mark.parametrize("where", NOTHING, ids=str)
def test_what_no_row_can_be_is_answered_without_reading(table: Table, where: object) -> None:
    told = table.explain(where=where)
    assert (told.rows, told.leaves_reached, told.files_reached, told.requests) == (0, 0, 0, 0)
    assert table.count(where=where) == 0
    assert table.to_arrow(where=where).schema == table.arrow_schema


def test_keys_and_predicate_meet(table: Table) -> None:
    where = "id > 'b' and day = '2013-01-01'"
    table.to_arrow(keys=["a01", "b07", "c03"], where=where)  # fills caches
    both = table.explain(keys=["a01", "b07", "c03"], where=where)
    alone = table.explain(keys=[("b07", DAYS[0]), ("c03", DAYS[0])])
    assert read(both) == read(alone)
    apart = table.explain(ranges={"id": ("a", "b")}, where="id >= 'c'")
    assert (apart.leaves_reached, apart.requests) == (0, 0)
    found = table.to_arrow(ranges={"day": (DAYS[0], DAYS[1])}, where="id in ('a01', 'c03')")
    assert found["id"].to_pylist() == ["a01", "c03"]


PLAIN: list[tuple[object, Callable[[dict[str, Any]], bool]]] = [
    ("id > 'b40' and v = 3", lambda r: r["id"] > "b40" and r["v"] == 3),
    ("id > 'b40' or v = 3", lambda r: r["id"] > "b40" or r["v"] == 3),
    ("not (id > 'b40' or v = 3)", lambda r: r["id"] <= "b40" and r["v"] not in (3, None)),
    ("v is null and id like '%0'", lambda r: r["v"] is None and r["id"].endswith("0")),
    (
        "day > '2013-01-01' and (id < 'a02' or n = 77)",
        lambda r: r["day"] == DAYS[1] and (r["id"] < "a02" or r["n"] == 77),
    ),
    ("n between 70 and 72 and id <> 'b21'", lambda r: r["n"] in (70, 72)),
    ((id_ > "b40") & (pc.field("n") + 1 == 100), lambda r: r["n"] == 99),
    ((id_ > "b40") | (pc.field("n") + 1 == 3), lambda r: r["id"] > "b40" or r["n"] == 2),
]


@pytest.mark.parametrize(
    ("where", "keeps"), PLAIN, ids=lambda one: None if callable(one) else str(one)[:60]
)
def test_rows_are_those_of_a_plain_filter(
    table: Table, where: object, keeps: Callable[[dict[str, Any]], bool]
) -> None:
    wanted = [row for row in ROWS if keeps(row)]
    assert table.to_arrow(where=where).to_pylist() == wanted
    assert table.to_arrow(where=where, columns="v")["v"].to_pylist() == [r["v"] for r in wanted]
    assert table.to_arrow(where=where, limit=1).to_pylist() == wanted[:1]
    assert table.count(where=where) == len(wanted)


def test_only_the_first_leaves_are_reached(table: Table) -> None:
    told = table.explain(where="id < 'a10' and v = 1")
    assert (told.leaves_reached, told.leaves) == (1, 4)
    told = table.explain(where="v = 1")
    assert told.leaves_reached == 4


def test_merged_rows_are_narrowed_by_keys_and_tested_when_they_are_whole(lake: Lake) -> None:
    sums = lake.create_table(
        "sums",
        lakebed.schema_of(row_keys={"id": "string"}, values={"seen": "int64"}),
        split_points=["b"],
        processing=lakebed.Processing(aggregate={"seen": "sum"}),
        settings={"shared_file_rows_max": 0},
    )
    for _ in range(2):
        sums.ingest(pa.table({"id": ["a", "b", "c"], "seen": [1, 2, 3]}))
    told = sums.explain(where="id >= 'b' and seen > 4")
    assert (told.rows, told.leaves_reached, told.files_matching) == (1, 1, 2)
    assert sums.to_arrow(where="id >= 'b' and seen >= 4").to_pylist() == [
        {"id": "b", "seen": 4},
        {"id": "c", "seen": 6},
    ]
    assert sums.count(where="id = 'c' and seen = 3") == 0


def test_one_column_may_be_named_as_text(table: Table) -> None:
    found = table.query(keys=[KEY], columns="v")
    assert found.schema.names == ["v"]
    assert found.read_all().num_rows == 1
    assert table.explain(keys=[KEY], columns="v").rows == 1
