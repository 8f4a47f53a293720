"""Queries by values, and by any of the key fields: row groups that cannot match are not read."""

import math
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lakebed import field, schema_of
from lakebed.errors import InvalidError
from lakebed.model.schema import Schema
from lakebed.ports.sorted_files import ReadFigures
from lakebed.query.conditions import condition_of
from lakebed.sorted_files.format import row_groups
from lakebed.sorted_files.format.arrow_schema import arrow_schema
from lakebed.sorted_files.writing import encoding_row_groups, writer_options
from tests.unit.sorted_files.lakes import EVERY_TYPE, Lake, batch_of

SCHEMA = schema_of(
    row_keys={"day": "int32", "car": "string"}, values={"n": "int64?", "note": "string?"}
)
Row = dict[str, Any]
ROWS: list[Row] = [
    {"day": day, "car": f"c{car}", "n": day * 10 + car if car else None, "note": "x" * car}
    for day in range(6)
    for car in range(4)
]


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    """Files with row groups of two rows, and statistics of all columns."""
    options = writer_options.writer_options

    def with_statistics(*given: object) -> dict[str, Any]:
        return options(*given) | {"write_statistics": True}  # type: ignore[arg-type]  # as given

    monkeypatch.setattr(row_groups, "ROW_GROUP_ROWS_MAX", 2)
    monkeypatch.setattr(encoding_row_groups, "writer_options", with_statistics)
    return Lake(tmp_path)


def asked(
    lake: Lake,
    given: list[Row],
    schema: Schema = SCHEMA,
    *,
    now: Schema | None = None,
    **of: Any,  # noqa: ANN401 - as queries
) -> tuple[list[Row], int]:
    """Return the rows that are found, and how many row groups were read for them."""
    part = lake.part(lake.write(schema, [batch_of(schema, given)]))
    figures, now = ReadFigures(), now or schema
    found = lake.files.read(now, [[part]], condition_of(now, **of), figures)
    return [row for batch in found for row in batch.to_pylist()], figures.row_groups_read


@pytest.mark.parametrize(
    ("where", "keeps", "row_groups"),
    [
        (field("n") == 23, lambda r: r["n"] == 23, 1),
        (field("n") > 50, lambda r: (r["n"] or 0) > 50, 2),
        (field("n").is_null(), lambda r: r["n"] is None, 6),
        (field("n").is_in([1, 51]), lambda r: r["n"] in (1, 51), 2),
        (~(field("n") < 51), lambda r: (r["n"] or 0) >= 51, 2),
        (
            (field("day") == 3) & (field("car") == "c1"),
            lambda r: (r["day"], r["car"]) == (3, "c1"),
            1,
        ),
        (
            (field("car") == "c1") | (field("n") == 2),
            lambda r: r["car"] == "c1" or r["n"] == 2,
            7,
        ),
        (field("note") == "xxx", lambda r: r["note"] == "xxx", 6),
        (field("note").like("xxx%"), lambda r: r["note"] == "xxx", 6),
        (~field("note").like("x%"), lambda r: not r["note"], 6),
        ("note like '_xx'", lambda r: r["note"] == "xxx", 12),
        ("n between 11 and 21", lambda r: 11 <= (r["n"] or 0) <= 21, 3),
        (field("n") > 1000, lambda _: False, 0),
    ],
)
def test_row_groups_are_cut_by_statistics(
    lake: Lake, where: object, keeps: Callable[[Row], bool], row_groups: int
) -> None:
    assert asked(lake, ROWS, where=where) == (list(filter(keeps, ROWS)), row_groups)


def test_a_later_key_field_alone_cuts_row_groups(lake: Lake) -> None:
    wanted = [row for row in ROWS if row["car"] == "c0"]
    assert asked(lake, ROWS, ranges={"car": ("c0", "c1")}) == (wanted, 6)
    wanted = [row for row in ROWS if row["car"] == "c3" or row["day"] == 5]
    either = [{"car": ("c3", None)}, {"day": (5, None)}]
    assert asked(lake, ROWS, ranges=either) == (wanted, 7)


def test_boxes_that_overlap_give_a_row_once(lake: Lake) -> None:
    boxes = [{"day": (1, 4), "car": ("c1", "c3")}, {"day": (2, 6), "car": ("c2", None)}]
    wanted = [
        row
        for row in ROWS
        if (1 <= row["day"] < 4 and "c1" <= row["car"] < "c3")
        or (row["day"] >= 2 and row["car"] >= "c2")
    ]
    assert asked(lake, ROWS, ranges=boxes)[0] == wanted
    assert asked(lake, ROWS, ranges=[*boxes, {}])[0] == ROWS
    assert asked(lake, ROWS, keys=[(2, "c3")], ranges=boxes)[0] == wanted


def test_columns_that_only_the_test_looks_at_are_not_given(lake: Lake) -> None:
    wanted = [{"note": row["note"]} for row in ROWS if row["n"] == 23]
    assert asked(lake, ROWS, columns=["note"], where=field("n") == 23) == (wanted, 1)


@pytest.mark.parametrize(
    "expression",
    [
        pc.field("n") - pc.field("day") * 10 == 3,
        pc.starts_with(pc.field("note"), "xx") & (pc.field("n") > 20),
        pc.field("car").isin(["c1"]) & ~pc.field("n").is_null(),
    ],
)
def test_expressions_of_arrow_keep_the_order(lake: Lake, expression: pc.Expression) -> None:
    wanted = (
        pa.Table.from_pylist(ROWS)
        .filter(expression)
        .sort_by([("day", "ascending"), ("car", "ascending")])
    )
    found, _ = asked(lake, ROWS, where=expression)
    assert found == wanted.to_pylist() != []
    found, _ = asked(lake, ROWS, where=expression, columns=["car"])
    assert found == wanted.select(["car"]).to_pylist()


N, CAR = pc.field("n"), pc.field("car")


@pytest.mark.parametrize(
    ("expression", "row_groups"),
    [
        (N == 23, 1),
        (N > 50, 2),
        (N.is_null(), 6),
        (N.isin([1, 51]), 2),
        (~(N < 51), 2),
        ((pc.field("day") == 3) & (CAR == "c1"), 1),
        ((CAR == "c1") | (N == 2), 7),
        (pc.field("note") == "xxx", 6),
        (N > 1000, 0),
        (N.cast("float64") < 2.0, 1),
        (pc.if_else(N > 12, CAR == "c3", pc.scalar(value=False)), 5),
        (N + 1 == 24, 12),
    ],
)
def test_expressions_of_arrow_cut_row_groups(
    lake: Lake, expression: pc.Expression, row_groups: int
) -> None:
    wanted = pa.Table.from_pylist(ROWS).filter(expression).to_pylist()
    assert asked(lake, ROWS, where=expression) == (wanted, row_groups)


def test_an_expression_that_has_no_text_is_one_all_the_same(lake: Lake) -> None:
    schema = schema_of(row_keys={"k": "int32"}, values={"raw": "binary?"})
    rows: list[Row] = [{"k": k, "raw": raw} for k, raw in enumerate([b"\xff", b"a", None])]
    for where in (
        pc.field("raw") == b"\xff",
        (pc.field("raw") == b"\xff") & (pc.field("k") * 1 == 0),
    ):
        found, _ = asked(lake, rows, schema, where=where)
        assert [row["k"] for row in found] == [0]


def test_expressions_keep_what_bounds_do_not_tell(lake: Lake) -> None:
    schema = schema_of(row_keys={"k": "int32"}, values={"x": "float64?", "y": "int8?"})
    rows: list[Row] = [
        {"k": 0, "x": 1.0, "y": None},
        {"k": 1, "x": math.nan, "y": None},
        {"k": 2, "x": None, "y": 1},
        {"k": 3, "x": 2.0, "y": 1},
    ]
    x, y = pc.field("x"), pc.field("y")
    for where in (~(x <= 5), pc.is_nan(x), x.is_null(), ~y.is_null(), y.is_null(), ~(y != 1)):
        wanted = pa.Table.from_pylist(rows, arrow_schema(schema)).filter(where)["k"].to_pylist()
        found, _ = asked(lake, rows, schema, where=where)
        assert [row["k"] for row in found] == wanted != [], where


@pytest.mark.parametrize(
    ("where", "says"),
    [
        (field("m") > 5, "no such field"),
        (field("n") > "5", "not a value of the field"),
        (field("n"), "not a predicate"),
        ("n >", "not a predicate"),
        (True, "not a predicate"),
        (pc.field("m") > 5, "cannot be computed"),
        (pc.field("n") > "5", "cannot be computed"),
        (pc.field("n") + 5, "not true or false"),
        (pc.field(0) > 5, "columns by position"),
    ],
)
def test_what_is_no_test_is_refused_before_anything_is_read(where: object, says: str) -> None:
    with pytest.raises(InvalidError, match=says):
        condition_of(SCHEMA, where=where)


def test_an_expression_that_fails_on_a_row_is_an_error_of_its_own(lake: Lake) -> None:
    with pytest.raises(InvalidError, match="cannot be computed"):
        asked(lake, ROWS, where=pc.scalar(1) / pc.field("day") > 0)


def test_of_older_files_nulls_and_narrow_numbers_are_known(lake: Lake) -> None:
    old = schema_of(row_keys={"k": "int32"}, values={"a": "int8", "x": "float32"})
    now = schema_of(
        row_keys={"k": "int32"}, values={"a": "int64", "x": "float64", "new": "string?"}
    )
    rows = [{"k": k, "a": k, "x": k / 2} for k in range(6)]
    assert asked(lake, rows, old, now=now, where=field("new") == "a") == ([], 0)
    found, row_groups = asked(lake, rows, old, now=now, where=field("new").is_null())
    assert ([row["k"] for row in found], row_groups) == ([0, 1, 2, 3, 4, 5], 3)
    found, row_groups = asked(lake, rows, old, now=now, where=field("a") == 1 << 40)
    assert (found, row_groups) == ([], 0)
    found, row_groups = asked(lake, rows, old, now=now, where=field("x") > 1.75)
    assert ([row["k"] for row in found], row_groups) == ([4, 5], 1)


def test_a_float32_is_compared_as_the_nearest_one(lake: Lake) -> None:
    schema = schema_of(row_keys={"k": "int32"}, values={"x": "float32"})
    rows = [{"k": k, "x": pa.scalar(0.1, pa.float32()).as_py()} for k in range(2)]
    assert asked(lake, rows, schema, where=field("x") == 0.1) == (rows, 1)


def test_statistics_of_every_type_are_read_as_its_literals(lake: Lake) -> None:
    fields = {f.name: f for f in EVERY_TYPE.values if f.nullable}
    some: dict[str, Any] = {
        **{name: 5 for name in fields if name.startswith(("int", "uint", "float"))},
        "uint32": 2**32 - 1,
        "int8": -128,
        "decimal": Decimal("-1.25"),
        "bool": True,
        "text": "\xe9",
        "bytes": b"\xff",
    }
    moments = {"day": 5, "time": 5, "naive": 5, "t": 5}
    columns = lake.read(EVERY_TYPE, []).schema
    nested: Row = {"s": "s", "i": 1, "list": [], "map": [], "struct": {"a": None, "b": None}}
    arrays = [
        pa.array([moments[c.name]], pa.int32() if c.name == "day" else pa.int64()).cast(c.type)
        if c.name in moments
        else pa.array([(some | nested)[c.name]], c.type)
        for c in columns
    ]
    part = lake.part(lake.write(EVERY_TYPE, [pa.RecordBatch.from_arrays(arrays, schema=columns)]))
    for name, value in (some | moments).items():
        for where, kept in (
            (field(name) == value, 1),
            (field(name) != value, 0),
            *(((field(name) > value), 0) for _ in range(name != "bool")),
        ):
            figures = ReadFigures()
            found = lake.files.read(
                EVERY_TYPE, [[part]], condition_of(EVERY_TYPE, where=where), figures
            )
            assert sum(map(len, found)) == kept, (name, value)
            if name not in ("float32", "float64"):
                assert figures.row_groups_read == kept, (name, value)
