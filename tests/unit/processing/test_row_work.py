"""Filters, age-off, aggregation and latest rows where they are at their edges."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from lakebed import AgeOff, Lake, Latest, Processing, Schema, schema_of
from lakebed.backends.memory.clock import START, VirtualClock
from lakebed.errors import InvalidError
from lakebed.model.names import Micros
from lakebed.model.processing import ProcessingPass, Stage, checked_processing
from lakebed.processing.row_work import RowWork
from lakebed.sorted_files.format.arrow_schema import arrow_schema

MAX = 2**63 - 1
Rows = list[dict[str, Any]]
Values = tuple[object, ...]


def merged(
    schema: Schema, processing: Processing, batches: Sequence[Rows], stage: Stage = "query"
) -> Rows:
    given = ProcessingPass(checked_processing(processing, schema), Micros(0), stage)
    work = RowWork(schema, given)
    columns = arrow_schema(schema)
    selected = [work.selected(pa.RecordBatch.from_pylist(b, schema=columns)) for b in batches]
    return [row for batch in work.merged(selected) for row in batch.to_pylist()]


def summed(type_: str, *values: object, function: str = "sum") -> object:
    schema = schema_of(row_keys={"id": "int64"}, values={"v": f"{type_}?"})
    rows = [[{"id": 1, "v": value} for value in values]]
    (row,) = merged(schema, Processing(aggregate={"v": function}), rows)
    return row["v"]


@pytest.mark.parametrize(
    ("type_", "values"),
    [
        ("int64", (MAX, 1)),
        ("int64", (-MAX, -2)),
        ("int64", (MAX, MAX, 2)),
        ("int64", (-MAX - 1, -MAX - 1)),
        ("int8", (100, 28)),
        ("uint8", (200, 56)),
        ("int32", (2**31 - 1, 1)),
        ("decimal128(4,2)", (Decimal("99.99"), Decimal("0.01"))),
        ("decimal128(38,0)", (Decimal("9" * 38), Decimal(1))),
        ("decimal128(38,0)", (Decimal("9" * 38),) * 3),
    ],
)
def test_a_sum_that_does_not_fit_is_refused_with_its_field(type_: str, values: Values) -> None:
    with pytest.raises(InvalidError, match=r"does not fit its field \(field=v"):
        summed(type_, *values)


@pytest.mark.parametrize(
    ("type_", "values", "wanted"),
    [
        ("int64", (MAX, 1, -1), MAX),
        ("int64", (-MAX, None, -1), -MAX - 1),
        ("int64", (None, None), None),
        ("uint8", (200, 55), 255),
        ("int8", (-100, -28), -128),
        ("float64", (0.5, None, 0.25), 0.75),
        ("float32", (float("inf"), 1.0), float("inf")),
        ("decimal128(38,0)", (Decimal("9" * 38), Decimal(-1)), Decimal("9" * 37 + "8")),
        ("decimal128(38,2)", (Decimal("-0.01"), None, Decimal("0.02")), Decimal("0.01")),
    ],
)
def test_a_sum_that_fits_is_exact(type_: str, values: Values, wanted: object) -> None:
    assert summed(type_, *values) == wanted


@pytest.mark.parametrize(
    ("function", "values", "wanted"),
    [
        ("max", (1.0, float("nan")), "nan"),
        ("min", (1.0, float("nan")), "1.0"),
        ("min", (float("nan"), None), "nan"),
        ("max", (-0.0, -0.0), "0.0"),
        ("max", (None, None), "None"),
    ],
)
def test_nan_is_above_all_numbers(function: str, values: Values, wanted: str) -> None:
    assert str(summed("float64", *values, function=function)) == wanted


def test_one_giant_group_is_held_back_as_one_row() -> None:
    schema = schema_of(row_keys={"id": "string"}, values={"v": "int64", "n": "int64"})
    batch = pa.RecordBatch.from_pydict(
        {"id": ["a"] * 1000, "v": np.arange(1000), "n": np.ones(1000, np.int64)},
        schema=arrow_schema(schema),
    )
    given = ProcessingPass(
        Processing(aggregate={"v": "max", "n": "count"}), Micros(0), "compaction"
    )
    found = list(RowWork(schema, given).merged(batch for _ in range(500)))
    assert [b.to_pylist() for b in found] == [[{"id": "a", "v": 999, "n": 500_000}]]


def test_a_tie_goes_to_a_delete_then_to_the_greatest_row() -> None:
    schema = schema_of(
        row_keys={"id": "int64"},
        values={"at": "int64", "gone": "bool?", "tags": {"list": "string"}, "x": "int32?"},
    )
    use = Processing(latest=Latest("at", delete="gone"))
    rows = [
        {"id": 1, "at": 5, "gone": False, "tags": ["z"], "x": 1},
        {"id": 1, "at": 5, "gone": True, "tags": [], "x": None},
        {"id": 2, "at": 5, "gone": None, "tags": ["a", "b"], "x": None},
        {"id": 2, "at": 5, "gone": None, "tags": ["a"], "x": 9},
        {"id": 2, "at": 4, "gone": True, "tags": ["z"], "x": 9},
    ]
    assert merged(schema, use, [rows]) == [rows[2]]
    assert merged(schema, use, [rows[::-1][3:], rows[::-1][:3]], "compaction") == [rows[1], rows[2]]


def test_expired_rows_vanish_at_once_and_from_files_in_time(
    lake: Lake, clock: VirtualClock
) -> None:
    schema = schema_of(row_keys={"id": "int64"}, values={"at": "timestamp[us, UTC]?"})
    use = Processing(age_off=AgeOff("at", seconds=10_000))
    table = lake.create_table("t", schema, processing=use)
    times = pa.array([START, START + 5_000_000_000, None, 0], pa.timestamp("us", "UTC"))
    table.ingest(pa.table({"id": [1, 2, 3, 4], "at": times}))
    assert table.query(columns=["id"]).read_all()["id"].to_pylist() == [1, 2, 3]
    assert lake.status("t")[0].rows == 3  # one was too old to be taken in
    clock.advance(10_000)
    assert table.query().read_all().num_rows == 3  # just not older than the span
    clock.advance(0.000001)
    assert table.query(columns=["id"]).read_all()["id"].to_pylist() == [2, 3]
    assert lake.status("t")[0].rows == 3
    lake.run()
    assert lake.status("t")[0].rows == 2
    before = lake.status("t")[0].number
    lake.run()
    assert lake.status("t")[0].number == before  # not again and again
    clock.advance(10_000)
    table.compact()
    assert lake.status("t")[0].rows == 1


def test_a_file_of_which_nothing_is_left_goes(lake: Lake, clock: VirtualClock) -> None:
    schema = schema_of(row_keys={"id": "int64", "day": "date32"})
    use = Processing(age_off=AgeOff("day", seconds=86_400))
    table = lake.create_table("t", schema, processing=use)
    day = START // 86_400_000_000
    rows = pa.table({"id": [1, 2], "day": pa.array([day, day], pa.date32())})
    table.ingest(rows, job="monday")
    clock.advance(3 * 86_400)
    assert table.query().read_all().num_rows == 0
    lake.run()
    assert lake.status("t")[0].files == 0
    assert table.ingest(rows, job="late").files == 0
    assert table.ingest(rows, job="late").repeated
