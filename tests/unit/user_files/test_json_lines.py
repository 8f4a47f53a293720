"""JSON lines: what goes in is what the schema says, or is refused with file and line."""

import datetime
import json
import math
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pytest

from lakebed.errors import InvalidError, UnreadableInputError
from lakebed.model.changes.schema_changes import changed, planned
from lakebed.model.names import Micros
from lakebed.model.schema import Schema, schema_from_json, schema_of
from lakebed.sorted_files.format.arrow_schema import arrow_schema
from lakebed.user_files import json_lines as module
from lakebed.user_files.casting import conform
from lakebed.user_files.json_lines import json_batches
from lakebed.user_files.json_rewriting import Rewriting
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
    expected = [{"n": 1, "s": {"n": "5", "m": None}}]
    assert read(path, schema, '{"n": 1, "s": {"n": "5"}}') == expected
    assert read(path, schema, '{"n": "1", "s": {"n": "5"}}') == expected
    with pytest.raises(UnreadableInputError, match="/s/n"):
        read(path, schema, '{"n": "1", "s": {"n": 5}}')


def test_a_map_keeps_its_order_and_keys_that_come_twice(path: Path) -> None:
    text = '{"id": 1, "map": {"b": 1, "a": "2", "b": null}, "by": {"2": null, "-1": null}}'
    (row,) = read(path, NESTED, text)
    assert row["map"] == [("b", 1), ("a", 2), ("b", None)]
    assert row["by"] == [(2, None), (-1, None)]


@pytest.mark.parametrize("rest", ['"n": "2"', '"raw": "AA==", "raw": null, "n": "2"'])
def test_a_field_that_comes_twice_is_refused_in_rows_that_are_rewritten(
    path: Path, rest: str
) -> None:
    line = f'{{"id": "a", "n": "1", {rest}}}'
    with pytest.raises(UnreadableInputError, match="twice") as raised:
        read(path, SCHEMA, GOOD + line)
    assert raised.value.facts["line"] == 2


def test_unknown_names_may_come_twice_and_hold_anything_where_they_are_dropped(path: Path) -> None:
    line = b'{"x": {"y": [1]}, "id": "a", "x": "\xff", "n": "1", "x": 1e99999}'
    (row,) = read(path, SCHEMA, line, extra_columns="drop")
    assert (row["id"], row["n"]) == ("a", 1)


def test_a_name_may_be_written_with_escapes(path: Path) -> None:
    (row,) = read(path, SCHEMA, r'{"\u0069d": "a", "\u006e": "9007199254740993", "price": 0.10}')
    assert (row["id"], row["n"], str(row["price"])) == ("a", 9007199254740993, "0.10")


def test_numbers_keep_their_digits_where_other_values_are_rewritten(path: Path) -> None:
    text = """
        {"id": "1", "n": -9223372036854775807, "price": 12345678901234567.25, "f": 16777217.0000001}
        {"id": "2", "n": "1", "f": 16777217.0000001}
    """
    rewritten, other = read(path, SCHEMA, text)
    (as_it_is,) = read(path, SCHEMA, '{"id": "2", "f": 16777217.0000001}')
    assert rewritten["n"] == -9223372036854775807
    assert str(rewritten["price"]) == "12345678901234567.25"
    assert rewritten["f"] == other["f"] == as_it_is["f"]


def test_text_that_is_not_utf8_is_refused_in_rows_that_are_rewritten(path: Path) -> None:
    for text in (b'"\xff"', rb'"\udc00"'):
        with pytest.raises(UnreadableInputError, match="UTF-8") as raised:
            read(path, SCHEMA, GOOD.encode() + b'{"n": "5", "id": ' + text + b"}")
        assert raised.value.facts["line"] == 2


@pytest.mark.parametrize("end", ["1", "{", '1, "id": "a', "1]", '1, "id": "a"} x', "[" * 100_000])
def test_what_is_not_json_is_told_so_and_not_what_arrow_rejects(path: Path, end: str) -> None:
    with pytest.raises(UnreadableInputError, match=r"not JSON|nested too deep") as raised:
        read(path, NESTED, '{"id": 1}\n{"id": 2, "map": {}, "list": ' + end)
    assert raised.value.facts["line"] == 2


@pytest.mark.parametrize("before", ["", " \n\t", '{"id": "a", "n": 1.5}\n', "[", '[{"id": 1}, '])
def test_a_row_that_is_null_is_refused(path: Path, before: str) -> None:
    text = before + "null" + ("]" if before.startswith("[") else "")
    with pytest.raises(UnreadableInputError):
        read(path, SCHEMA, text)


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
    ("type_", "text", "value"),
    [
        ({"map": ["string", {"list": "int64"}]}, '{"a": ["1", 2]}', [("a", [1, 2])]),
        ({"list": {"map": ["int8", "bool"]}}, '[{"1": true}, null]', [[(1, True)], None]),
        (
            {"map": ["string", {"map": ["string", "float64"]}]},
            '{"a": {"b": "Infinity"}, "c": null}',
            [("a", [("b", math.inf)]), ("c", None)],
        ),
        (
            {"map": ["string", {"struct": [{"name": "d", "type": "decimal128(5,1)"}]}]},
            '{"a": {"d": 1.5}}',
            [("a", {"d": Decimal("1.5")})],
        ),
        ({"list": "decimal128(5,1)"}, '[1, "2.5", 1e2]', [Decimal(n) for n in (1, "2.5", 100)]),
    ],
)
def test_types_are_read_within_each_other_and_written_so(
    path: Path, type_: object, text: str, value: object
) -> None:
    schema = schema_from_json(
        {
            "row_keys": [{"name": "id", "type": "string"}],
            "values": [{"name": "v", "type": type_, "nullable": True}],
        }
    )
    expected = [{"id": "a", "v": value}, {"id": "b", "v": None}]
    assert read(path, schema, f'{{"id": "a", "v": {text}}}\n{{"id": "b"}}') == expected
    (batch,) = pa.Table.from_pylist(expected, schema=arrow_schema(schema)).to_batches()
    assert read(path, schema, json_lines(batch).to_pybytes()) == expected


def test_only_rows_near_one_that_arrow_rejects_are_decoded(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rewrite, seen = Rewriting.rewritten, list[int]()

    def counted(self: Rewriting, rows: bytes) -> bytes:
        seen.append(len(rows))
        return rewrite(self, rows)

    monkeypatch.setattr(Rewriting, "rewritten", counted)
    lines = [f'{{"id": "{place:05d}", "n": {place}}}' for place in range(20_000)]
    assert len(read(path, SCHEMA, "\n".join(lines))) == 20_000
    assert seen == []
    lines[12_345] = lines[12_345].replace(" 12345", ' "-1"')
    rows = read(path, SCHEMA, "\n".join(lines))
    assert [row["id"] for row in rows] == [f"{place:05d}" for place in range(20_000)]
    assert [row["n"] for row in rows if row["n"] != int(row["id"])] == [-1]
    assert len(seen) == 1
    assert seen[0] <= module.REWRITTEN_BYTES
