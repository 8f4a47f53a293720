import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from lakebed.errors import InvalidError
from lakebed.model.schema import Schema, schema_from_json, schema_json
from lakebed.sorted_files.format.arrow_schema import arrow_schema, schema_from_arrow
from lakebed.user_files.casting import conform
from tests.unit.sorted_files.lakes import EVERY_TYPE, SLEEPER, batch_of

NOON = datetime.datetime(2013, 1, 31, 12, tzinfo=datetime.UTC)
ACCEPTED: list[tuple[object, pa.Array, list[Any]]] = [
    ("string", pa.array(["a", None]).dictionary_encode(), ["a", None]),
    ("string", pa.array(["a"], pa.large_string()), ["a"]),
    ("string", pa.array(["a"], pa.string_view()), ["a"]),
    ("binary", pa.array([b"a"], pa.binary_view()), [b"a"]),
    ("binary", pa.array([b"a"], pa.large_binary()), [b"a"]),
    ("binary", pa.array([b"ab"], pa.binary(2)), [b"ab"]),
    ("int64", pa.array([-1], pa.int32()), [-1]),
    ("int64", pa.array([2**32 - 1], pa.uint32()), [2**32 - 1]),
    ("int16", pa.array([255], pa.uint8()), [255]),
    ("uint32", pa.array([65535], pa.uint16()), [65535]),
    ("float64", pa.array([0.5], pa.float32()), [0.5]),
    ("decimal128(20,0)", pa.array([2**64 - 1], pa.uint64()), [Decimal(2**64 - 1)]),
    ("decimal128(12,2)", pa.array([Decimal("1.5")], pa.decimal128(3, 1)), [Decimal("1.50")]),
    ("timestamp[us, UTC]", pa.array([NOON], pa.timestamp("s", tz="America/New_York")), [NOON]),
    ("timestamp[us, UTC]", pa.array([NOON], pa.timestamp("ns", tz="UTC")), [NOON]),
    (
        "timestamp[us]",
        pa.array([5], pa.timestamp("ms")),
        [datetime.datetime.fromisoformat("1970-01-01T00:00:00.005")],
    ),
    ("date32", pa.array([datetime.date(2013, 1, 31)], pa.date64()), [datetime.date(2013, 1, 31)]),
    ("time64[us]", pa.array([datetime.time(1, 2)], pa.time32("s")), [datetime.time(1, 2)]),
    ("int32", pa.nulls(2), [None, None]),
    ({"list": "int64"}, pa.array([[1], None, []], pa.large_list(pa.int32())), [[1], None, []]),
    ({"list": "string"}, pa.array([["a", "b"]], pa.list_(pa.string(), 2)), [["a", "b"]]),
    (
        {"map": ["string", "int64"]},
        pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int8())),
        [[("a", 1)]],
    ),
    (
        {"struct": [{"name": "x", "type": "int64"}, {"name": "y", "type": "string"}]},
        pa.array([{"y": "b", "x": 1}, None], pa.struct({"y": pa.string(), "x": pa.int32()})),
        [{"x": 1, "y": "b"}, None],
    ),
    (
        {"struct": [{"name": "x", "type": "int64"}, {"name": "y", "type": "string"}]},
        pa.array([{"x": 1}], pa.struct({"x": pa.int64()})),
        [{"x": 1, "y": None}],
    ),
]
REFUSED: list[tuple[object, pa.Array, str]] = [
    ("int64", pa.array([1], pa.uint64()), "int64 or decimal128"),
    ("int32", pa.array([1], pa.int64()), "wider"),
    ("float32", pa.array([1.0], pa.float64()), "cast the column to float"),
    ("float64", pa.array([1.0], pa.float16()), "float32"),
    ("int64", pa.array([1.0]), "cast the column to int64"),
    ("int64", pa.array([1], pa.duration("s")), "unit"),
    ("int64", pa.array(["1"]), "cast the column to int64"),
    ("string", pa.array([1]), "cast the column to string"),
    ("string", pa.array([b"a"]), "cast the column to string"),
    ("timestamp[us, UTC]", pa.array([1], pa.timestamp("us")), "no offset"),
    ("timestamp[us]", pa.array([1], pa.timestamp("us", tz="UTC")), "offset"),
    ("timestamp[us]", pa.array([1], pa.timestamp("ns")), "would lose data"),
    ("timestamp[us]", pa.array([2**62], pa.timestamp("s")), "out of bounds"),
    ("decimal128(4,2)", pa.array([Decimal("1.555")]), "cast the column to decimal128"),
    ({"list": "int32"}, pa.array([[1]], pa.list_(pa.int64())), "stored as"),
    ({"struct": [{"name": "x", "type": "int8"}]}, pa.array([{"z": 1}]), "stored as"),
]


def one_field(type_: object) -> Schema:
    return schema_from_json(
        {
            "row_keys": [{"name": "k", "type": "int32"}],
            "values": [{"name": "v", "type": type_, "nullable": True}],
        }
    )


@pytest.mark.parametrize(("type_", "column", "wanted"), ACCEPTED)
def test_what_loses_nothing_is_cast(type_: object, column: pa.Array, wanted: list[Any]) -> None:
    schema = one_field(type_)
    keys = pa.array(range(len(column)), pa.int32())
    for rows in (
        pa.record_batch({"v": column, "k": keys}),
        pa.table({"v": column, "k": keys}),
    ):
        found = conform(rows, schema)
        assert type(found) is type(rows)
        assert found.schema.equals(arrow_schema(schema), check_metadata=True)
        assert found.column("v").to_pylist() == wanted
        found.validate(full=True)


@pytest.mark.parametrize(("type_", "column", "told"), REFUSED)
def test_what_may_lose_something_is_refused_with_a_hint(
    type_: object, column: pa.Array, told: str
) -> None:
    rows = pa.record_batch({"k": pa.array(range(len(column)), pa.int32()), "v": column})
    with pytest.raises(InvalidError) as caught:
        conform(rows, one_field(type_))
    assert caught.value.facts["field"] == "v"
    assert caught.value.hint
    assert told in str(caught.value)


def test_nulls_are_refused_where_a_field_is_required() -> None:
    rows = batch_of(SLEEPER, [{"key": "a", "timestamp": 1, "value": "v", "note": None}])
    columns = [pa.array([None], pa.string()), *rows.columns[1:]]
    with pytest.raises(InvalidError, match=r"field=key .*nulls=1"):
        conform(pa.record_batch(columns, rows.schema.names), SLEEPER)
    hidden = pa.DictionaryArray.from_arrays([0], pa.array([None], pa.string()))
    with pytest.raises(InvalidError, match="nulls=1"):
        conform(pa.record_batch([hidden, *rows.columns[1:]], rows.schema.names), SLEEPER)


def test_missing_columns_are_null_or_refused_and_extra_ones_dropped_when_asked() -> None:
    rows = pa.table({"value": ["v"], "Key": ["a"], "timestamp": [1]})
    with pytest.raises(InvalidError, match=r"unknown column.*did you mean 'key'"):
        conform(rows, SLEEPER)
    with pytest.raises(InvalidError, match=r"missing.*did you mean 'Key'"):
        conform(rows, SLEEPER, extra_columns="drop")
    found = conform(rows.append_column("key", pa.array(["k"])), SLEEPER, extra_columns="drop")
    assert found.to_pylist() == [{"key": "k", "timestamp": 1, "value": "v", "note": None}]
    twice = pa.Table.from_arrays([pa.array(["a"])] * 2, ["key", "key"])
    with pytest.raises(InvalidError, match="two columns"):
        conform(twice, SLEEPER)


def test_text_that_is_not_utf8_is_refused() -> None:
    bad = pa.StringArray.from_buffers(
        1, pa.py_buffer(b"\x00\x00\x00\x00\x01\x00\x00\x00"), pa.py_buffer(b"\xff")
    )
    rows = pa.record_batch({"k": pa.array([1], pa.int32()), "v": bad})
    with pytest.raises(InvalidError, match="make the field binary"):
        conform(rows, one_field("string"))


def test_a_schema_goes_to_arrow_and_back() -> None:
    columns = arrow_schema(EVERY_TYPE)
    found = schema_from_arrow(columns, row_keys=["s", "i"], sort_keys=["t"])
    assert schema_json(found) == schema_json(EVERY_TYPE)


def test_a_schema_is_taken_from_columns_as_others_write_them() -> None:
    columns = pa.schema(
        {
            "n": pa.large_string(),
            "k": pa.dictionary(pa.int32(), pa.string()),
            "t": pa.timestamp("ns", tz="Europe/Berlin"),
        }
    )
    found = schema_from_arrow(columns, row_keys=["k"], sort_keys=["t"])
    assert [(f.name, str(f.type), f.nullable) for f in found.fields] == [
        ("k", "string", False),
        ("t", "timestamp[us, UTC]", False),
        ("n", "string", True),
    ]


@pytest.mark.parametrize(
    ("type_", "told"),
    [
        (pa.uint64(), "int64 or decimal128"),
        (pa.float16(), "float32"),
        (pa.duration("s"), "unit"),
        (pa.null(), "type its values will have"),
        (pa.decimal256(50, 2), "precision up to 38"),
        (pa.uuid(), "storage type"),
        (pa.dense_union([pa.field("a", pa.int8())]), "cast it"),
    ],
)
def test_a_type_that_no_table_holds_is_refused_with_a_hint(type_: pa.DataType, told: str) -> None:
    columns = pa.schema({"k": pa.int64(), "v": type_})
    with pytest.raises(InvalidError, match=told):
        schema_from_arrow(columns, row_keys=["k"])
    with pytest.raises(InvalidError, match="did you mean 'k'"):
        schema_from_arrow(columns, row_keys=["kk"])
