"""JSON lines: what goes in is what the schema says, or is refused with file and line."""

import datetime
import json
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pytest

from lakebed.errors import InvalidError, UnreadableInputError
from lakebed.model.names import Micros
from lakebed.model.schema import Schema, schema_from_json, schema_of
from lakebed.model.schema_changes import changed, planned
from lakebed.sorted_files.format.arrow_schema import arrow_schema
from lakebed.user_files import json_lines as module
from lakebed.user_files.casting import conform
from lakebed.user_files.json_lines import json_batches
from lakebed.user_files.json_text import json_lines

STRUCT = {"struct": [{"name": "raw", "type": "binary"}, {"name": "many", "type": {"list": "int8"}}]}
SCHEMA = schema_of(
    row_keys={"id": "string"},
    values={
        "n": "int64?",
        "small": "uint16?",
        "f": "float32?",
        "yes": "bool?",
        "raw": "binary?",
        "price": "decimal128(20,2)?",
        "day": "date32?",
        "time": "time64[us]?",
        "at": "timestamp[us, UTC]?",
        "local": "timestamp[us]?",
    },
)
NESTED_TYPES = {
    "list": {"list": "int64"},
    "lists": {"list": {"list": "string"}},
    "map": {"map": ["string", "int64"]},
    "by": {"map": ["int64", "timestamp[us, UTC]"]},
    "one": STRUCT,
    "ones": {"list": STRUCT},
}
NESTED = schema_from_json(
    {
        "row_keys": [{"name": "id", "type": "int64"}],
        "values": [{"name": n, "type": t, "nullable": True} for n, t in NESTED_TYPES.items()],
    }
)


def read(
    path: Path,
    schema: Schema,
    text: str | bytes,
    extra_columns: Literal["refuse", "drop"] = "refuse",
) -> list[dict[str, Any]]:
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    batches = json_batches(path, schema, extra_columns=extra_columns)
    fitted = [conform(batch, schema) for batch in batches]
    return pa.Table.from_batches(fitted, schema=arrow_schema(schema)).to_pylist()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "in.jsonl"


def test_every_flat_type_is_read_as_the_schema_says(path: Path) -> None:
    line = {
        "id": 'a "quoted" \\ {n}: \U0001f600',
        "n": -5,
        "small": 65535,
        "f": 0.5,
        "yes": True,
        "raw": "AP8=",
        "price": "12.5",
        "day": "2013-01-31",
        "time": "05:00:00.25",
        "at": "2013-01-31T05:00:00+05:00",
        "local": "2013-01-31T05:00:00",
    }
    nothing = {"id": "b"} | dict.fromkeys(list(line)[1:])
    text = "\n\n".join(json.dumps(row) for row in (line, nothing, {"id": "c"}))
    full, empty, missing = read(path, SCHEMA, "\ufeff" + text)
    assert full == line | {
        "raw": b"\x00\xff",
        "price": Decimal("12.50"),
        "day": datetime.date(2013, 1, 31),
        "time": datetime.time(5, 0, 0, 250_000),
        "at": datetime.datetime(2013, 1, 31, tzinfo=datetime.UTC),
        "local": datetime.datetime(2013, 1, 31, 5),  # noqa: DTZ001 - it has no zone
    }
    assert empty == nothing
    assert missing == nothing | {"id": "c"}


def test_numbers_may_come_as_strings_where_a_number_would_lose_digits(path: Path) -> None:
    text = """
        {"id": "1", "n": "9007199254740993", "f": "NaN", "price": 1.5}
        {"id": "2", "n": 1, "f": "-Infinity", "price": "123456789012345678.25"}
        {"id": "3", "n" : "-9223372036854775808", "f": 1e3, "price": -2e1}
        {"id": "\\"n\\":\\"7\\"", "n": null, "price": null}
    """
    rows = read(path, SCHEMA, text)
    assert [r["n"] for r in rows] == [9007199254740993, 1, -(1 << 63), None]
    assert str([r["f"] for r in rows]) == "[nan, -inf, 1000.0, None]"
    assert [str(r["price"]) for r in rows] == ["1.50", "123456789012345678.25", "-20.00", "None"]
    assert rows[3]["id"] == '"n":"7"'


def test_lists_maps_and_structs_are_read(path: Path) -> None:
    text = """
        {"id": 1, "list": ["9007199254740993", 2, null], "lists": [["a"], null, []], "map": {}}
        {"id": 2, "map": {"a": "5", "b,\\"c\\":{": 6, "n": null}, "by": {"7": "@"}}
        {"id": 3, "one": {"raw": "AA==", "many": [1]}, "ones": [{"many": null}, {}, null]}
    """
    rows = read(path, NESTED, text.replace("@", "2013-01-31T00:00:00Z"))
    assert rows[0]["list"] == [9007199254740993, 2, None]
    assert rows[0]["lists"] == [["a"], None, []]
    assert (rows[0]["map"], rows[1]["map"]) == ([], [("a", 5), ('b,"c":{', 6), ("n", None)])
    assert rows[1]["by"] == [(7, datetime.datetime(2013, 1, 31, tzinfo=datetime.UTC))]
    assert rows[2]["one"] == {"raw": b"\x00", "many": [1]}
    assert rows[2]["ones"] == [{"raw": None, "many": None}, {"raw": None, "many": None}, None]
    assert (rows[2]["list"], rows[2]["map"]) == (None, None)


def test_a_name_with_two_types_is_never_read_as_the_other(path: Path) -> None:
    inner = {"struct": [{"name": "n", "type": "string"}, {"name": "m", "type": "int8"}]}
    schema = schema_of(row_keys={"n": "int64"}, values={"s": inner})
    assert read(path, schema, '{"n": 1, "s": {"n": "5"}}') == [{"n": 1, "s": {"n": "5", "m": None}}]
    with pytest.raises(UnreadableInputError):
        read(path, schema, '{"n": "1", "s": {"n": "5"}}')


def test_what_was_written_as_json_lines_is_read_as_it_was(path: Path) -> None:
    rows = pa.Table.from_pylist(
        [
            {
                "id": n * 10**15,
                "list": [n, None, 1 << 60],
                "lists": [["{", "\n\t\\"], None],
                "map": [("a", 1 << 60), ('"', None)],
                "by": [(1 << 60, datetime.datetime(2013, 1, 31, tzinfo=datetime.UTC))],
                "one": {"raw": b"x" * n, "many": [1]},
                "ones": [],
            }
            for n in range(100)
        ],
        schema=arrow_schema(NESTED),
    )
    (batch,) = rows.to_batches()
    assert read(path, NESTED, json_lines(batch).to_pybytes()) == rows.to_pylist()


def test_files_larger_than_a_block_come_in_batches(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BLOCK_BYTES", 64)
    ids = [f"{n:03d}" + "x" * (n % 100) for n in range(300)]
    text = "\n".join(json.dumps({"id": id_}) for id_ in ids)
    assert [r["id"] for r in read(path, SCHEMA, text)] == ids
    with pytest.raises(UnreadableInputError) as raised:
        read(path, SCHEMA, text.replace('"250', '"250" "'))
    assert raised.value.facts["line"] == 251
    monkeypatch.setattr(module, "LINE_BYTES_MAX", 100)
    with pytest.raises(UnreadableInputError, match="too long"):
        read(path, SCHEMA, text)


def test_an_empty_file_has_no_rows(path: Path) -> None:
    assert read(path, SCHEMA, "") == read(path, SCHEMA, "\n \n") == []


GOOD = '{"id": "a", "n": 1}\n'


@pytest.mark.parametrize(
    "line",
    [
        '{"id": "a", "n": 1.5}',
        '{"id": "a", "n": "1.5"}',
        '{"id": "a", "n": 9223372036854775808}',
        '{"id": "a", "small": -1}',
        '{"id": "a", "yes": 1}',
        '{"id": 5}',
        '{"id": "a", "raw": "abc"}',
        '{"id": "a", "price": "1.255"}',
        '{"id": "a", "day": "2013-02-30"}',
        '{"id": "a", "day": 5}',
        '{"id": "a", "at": "2013-01-31T05:00:00"}',
        '{"id": "a", "at": 1359590400}',
        '{"id": "a", "local": "2013-01-31T05:00:00Z"}',
        '{"id": "a", "n": 1, "n": 2}',
        '{"id": "a", "n": 1',
        '["a", 1]',
        "id,n",
        "{'id': 'a'}",
    ],
)
def test_a_line_that_cannot_be_read_is_named(path: Path, line: str) -> None:
    with pytest.raises(UnreadableInputError) as raised:
        read(path, SCHEMA, GOOD * 7 + "\n" + line + "\n" + GOOD * 5)
    assert raised.value.facts["line"] == 9
    assert raised.value.facts["path"] == path
    assert raised.value.hint


def test_an_unknown_name_is_refused_or_dropped(path: Path) -> None:
    text = GOOD * 2 + '{"id": "b", "nn": {"n": "x"}}\n' + GOOD
    with pytest.raises(InvalidError, match="unknown column") as raised:
        read(path, SCHEMA, text)
    assert (raised.value.facts["field"], raised.value.facts["line"]) == ("nn", 3)
    rows = read(path, SCHEMA, text, extra_columns="drop")
    assert [r["id"] for r in rows] == ["a", "a", "b", "a"]


def test_a_name_of_before_is_refused_also_where_others_are_dropped(path: Path) -> None:
    changes = planned(SCHEMA, add={}, rename={"n": "m"}, drop=[], widen={})
    schema = changed(SCHEMA, changes, at=Micros(1))
    good = '{"id": "a", "m": 1, "extra": {"n": "a nested one stays"}, "note": "\\"n\\": 1"}\n'
    for line in (
        '{"id": "b", "n": 2}',
        '{"n" : 2, "id": "b"}',
        '{"id": "b", "x": {"m": 1}, "n": 2}',
    ):
        with pytest.raises(InvalidError, match="old name") as raised:
            read(path, schema, good * 3 + line + "\n" + good, extra_columns="drop")
        assert (raised.value.facts["field"], raised.value.facts["line"]) == ("n", 4)
        assert "'m'" in str(raised.value.hint)
    both = '{"id": "b", "n": 2, "m": 3}\n'
    assert [r["m"] for r in read(path, schema, good + both, extra_columns="drop")] == [1, 3]


@pytest.mark.parametrize("line", ['{"n": 1}', '{"id": null}', "{}"])
def test_a_required_field_that_is_null_or_missing_is_named(path: Path, line: str) -> None:
    with pytest.raises(InvalidError, match="required") as raised:
        read(path, SCHEMA, GOOD + "\n" + line + "\n" + GOOD)
    assert (raised.value.facts["field"], raised.value.facts["line"]) == ("id", 3)


@pytest.mark.parametrize(
    "type_", [{"map": ["string", {"list": "int8"}]}, {"list": {"map": ["string", "int8"]}}]
)
def test_types_that_cannot_be_rewritten_are_refused(path: Path, type_: object) -> None:
    with pytest.raises(InvalidError, match="cannot hold"):
        read(path, schema_of(row_keys={"id": "string"}, values={"v": type_}), GOOD)
