"""JSON text made by column agrees with JSON made by row."""

import base64
import json
import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakebed.user_files.json_text import base64_texts, json_lines

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
INT = st.integers(-(2**63), 2**63 - 1)
CASES: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.string(), TEXT),
    (pa.int64(), INT),
    (pa.uint8(), st.integers(0, 255)),
    (pa.float64(), st.floats()),
    (pa.bool_(), st.booleans()),
    (pa.binary(), st.binary(max_size=8)),
    (pa.list_(pa.string()), st.lists(st.none() | TEXT, max_size=3)),
    (pa.map_(pa.string(), pa.int64()), st.dictionaries(TEXT, st.none() | INT, max_size=3)),
    (pa.list_(pa.list_(pa.int64())), st.lists(st.none() | st.lists(INT), max_size=3)),
    (
        pa.struct([("a", pa.float64()), ("b", pa.list_(pa.binary()))]),
        st.fixed_dictionaries({"a": st.none() | st.floats(), "b": st.lists(st.binary())}),
    ),
]


def as_json(value: Any) -> Any:  # noqa: ANN401 - any value of a row, as JSON has it
    if isinstance(value, bool | str | None):
        return value
    if isinstance(value, int):
        return str(value) if abs(value) > 2**53 else value
    if isinstance(value, float):
        if math.isnan(value):
            return "NaN"
        return value if math.isfinite(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, dict):
        return {name: as_json(one) for name, one in value.items()}
    return [as_json(one) for one in value]


def lines_of(batch: pa.RecordBatch) -> list[Any]:
    return [json.loads(line) for line in json_lines(batch).to_pybytes().split(b"\n")[:-1]]


@pytest.mark.parametrize(("type_", "values"), CASES, ids=str)
@given(data=st.data())
def test_lines_agree_with_json_made_by_row(
    type_: pa.DataType, values: st.SearchStrategy[Any], data: st.DataObject
) -> None:
    given_ = data.draw(st.lists(st.none() | values, max_size=6))
    skipped = data.draw(st.integers(0, len(given_)))
    rows = [list(v.items()) if pa.types.is_map(type_) and v is not None else v for v in given_]
    batch = pa.record_batch({'q"\n': pa.array(rows, type_)}).slice(skipped)
    assert lines_of(batch) == [{'q"\n': as_json(value)} for value in given_[skipped:]]


def test_times_and_decimals_are_text() -> None:
    batch = pa.record_batch(
        {
            "day": pa.array([date(2013, 1, 31)]),
            "utc": pa.array([datetime(2013, 1, 31, 5, tzinfo=UTC)], pa.timestamp("us", "UTC")),
            "here": pa.array([1_500_000], pa.timestamp("us")),
            "time": pa.array([1], pa.time64("us")),
            "money": pa.array([Decimal("1.20")], pa.decimal128(38, 2)),
        }
    )
    assert lines_of(batch) == [
        {
            "day": "2013-01-31",
            "utc": "2013-01-31T05:00:00Z",
            "here": "1970-01-01T00:00:01.500000",
            "time": "00:00:00.000001",
            "money": "1.20",
        }
    ]


@given(st.lists(st.none() | st.binary(max_size=20)), st.integers(0, 5))
def test_base64_agrees_with_the_standard_library(values: list[bytes | None], skipped: int) -> None:
    texts = base64_texts(pa.array(values, pa.binary()).slice(skipped)).to_pylist()
    assert texts == [base64.b64encode(value or b"").decode() for value in values[skipped:]]
