"""Values of another type cost the field and not the record, where the policy says so."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from lakebed.decoding import engines
from lakebed.model.schema import schema_from_json, schema_of
from tests.dsl.decoding import decode

PARTS = {"list": {"struct": [{"name": "n", "type": "int64"}]}}
NULLABLE = {
    "name": "string",
    "size": "float64",
    "small": "int8",
    "amount": "decimal128(6,2)",
    "at": "timestamp[us, UTC]",
    "parts": PARTS,
}
SCHEMA = schema_from_json(
    {
        "row_keys": [{"name": "id", "type": "int64"}],
        "values": [
            *({"name": name, "type": type_, "nullable": True} for name, type_ in NULLABLE.items()),
            {"name": "needed", "type": "int64"},
        ],
    }
)
DROPS = {"types": "discard_field"}
NOTHING = dict.fromkeys(NULLABLE)


def payload(**values: object) -> bytes:
    return json.dumps({"id": 1, "needed": 7, **values}).encode()


def row(**values: object) -> dict[str, object]:
    return {"id": 1, **NOTHING, "needed": 7, **values}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("name", b"5"),
        ("name", b"[]"),
        ("size", b'"much"'),
        ("size", b"1e400"),
        ("size", b"2e308"),
        ("small", b"128"),
        ("small", b'"one"'),
        ("small", b"1.5"),
        ("small", b"9" * 100),
        ("amount", b"1.255"),
        ("amount", b"12345"),
        ("amount", b"20062827603801437255781353093375376324"),
        ("amount", b"true"),
        ("parts", b'{"n":1}'),
        ("parts", b'[{"n":"x"}]'),
    ],
)
def test_a_value_of_another_type_costs_the_field_and_not_the_record(name: str, text: bytes) -> None:
    bad = b'{"id":1,"needed":7,"name":"a","' + name.encode() + b'":' + text + b"}"
    if name == "name":
        bad = b'{"id":1,"needed":7,"name":' + text + b"}"
    kept = {} if name == "name" else {"name": "a"}
    assert decode(SCHEMA, [bad]).fates[0] in ("type-mismatch", "out-of-range")
    if text == b"1e400":  # Arrow refuses the number wherever it stands, and so do we
        assert decode(SCHEMA, [bad], connection=DROPS).fates == ["out-of-range"]
        return
    alone = decode(SCHEMA, [bad], connection=DROPS)
    assert alone.fates == [row(**kept)]
    assert alone.decoded.dropped == {name: 1}
    assert not alone.decoded.details
    good = payload(small=3)
    among = decode(SCHEMA, [good, bad, good, b"no json", bad], connection=DROPS)
    assert among.fates == [row(small=3), row(**kept), row(small=3), "unparsable", row(**kept)]
    assert among.decoded.dropped == {name: 2}


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (b'{"id":"x","needed":7}', "type-mismatch"),
        (b'{"id":1,"needed":"x"}', "type-mismatch"),
        (b'{"id":1,"needed":"x","small":"x"}', "type-mismatch"),
        (b'{"id":1,"needed":7,"at":"noon"}', "time-unreadable"),
        (b'{"id":1,"needed":7,"at":5,"small":"x"}', "time-unreadable"),
        (b'{"id":1,"small":"x"}', "missing-field"),
        (b'{"id":1,"needed":7,"small":"x","small":"x"}', "duplicate-field"),
        (b'{"id":1,"needed":7,"small":"x"} 1', "not-one-object"),
        (b'{"id":1,"needed":7,"small":"x","other":"\\ud800"}', "unparsable"),
    ],
)
def test_what_no_row_can_be_without_is_a_verdict_as_before(text: bytes, code: str) -> None:
    found = decode(SCHEMA, [text, payload()], connection=DROPS)
    assert found.fates == [code, row()]
    assert found.decoded.dropped == {}, "what is in no row is not counted"


def test_an_object_that_is_none_costs_all_that_is_in_it() -> None:
    columns = {"id": "id", "needed": "needed", "size": "m.size", "small": "m.in.small"}
    said = {**DROPS, "columns": columns}
    found = decode(SCHEMA, [payload(m=5), payload(m={"size": 1, "in": []})], connection=said)
    assert found.fates == [row(), row(size=1.0)]
    assert found.decoded.dropped == {"m.size": 1, "m.in.small": 2}


def test_an_unknown_field_is_judged_of_what_is_left() -> None:
    said = {**DROPS, "unknown": "freeze"}
    found = decode(SCHEMA, [payload(small="x", more=1), payload(small="x")], connection=said)
    assert found.fates == ["unknown-field", row()]
    counted = decode(SCHEMA, [payload(small="x", more=1)], connection=DROPS)
    assert (counted.fates, counted.decoded.unknown) == ([row()], {"more": 1})


def test_the_time_of_the_event_is_never_left_out() -> None:
    decoder = {"format": "json", "time": {"path": "small", "as": "s"}}
    schema = schema_of(row_keys={"id": "int64"}, values={"small": "int64?"})
    text = b'{"id":1,"small":"noon"}'
    found = decode(schema, [text], decoder=decoder, connection=DROPS)
    assert found.fates == ["time-unreadable"]


def test_texts_of_lines_and_empty_records_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "BLOCK_RECORDS", 2)
    said = {**DROPS, "lineage": True, "columns": {"n": "n", "f": "f"}}
    schema = schema_of(
        row_keys={"_split": "string", "_position": "int64"},
        values={"_version": "int64", "n": "int64?", "f": "float64?"},
    )
    decoder = {"format": "text", "fields": ["n", "f"]}
    lines: list[bytes | None] = [b"1,x", None, b"y,2.5", b"z,z", b"99999999999999999999,1"]
    found = decode(schema, lines, decoder=decoder, connection=said)
    values: list[Any] = [(fate["n"], fate["f"]) for fate in found.fates]
    assert values == [(1, None), (None, None), (None, 2.5), (None, None), (None, 1.0)]
    assert found.decoded.dropped == {"n": 3, "f": 2}


def test_of_msgpack() -> None:
    encode = msgspec.msgpack.encode
    given: list[bytes | None] = [
        encode({"id": 1, "needed": 7, "small": 300, "name": 5}),
        encode({"id": 1, "needed": "x"}),
        encode({"id": 1, "needed": 7, "parts": 5}),
        encode({"id": 1, "needed": 7, "parts": [{"n": "x"}]}),
    ]
    found = decode(SCHEMA, given, decoder={"format": "msgpack"}, connection=DROPS)
    assert found.fates == [row(), "type-mismatch", row(), row()]
    assert found.decoded.dropped == {"small": 1, "name": 1, "parts": 2}
    before = decode(SCHEMA, given, decoder={"format": "msgpack"})
    assert set(before.fates) <= {"out-of-range", "type-mismatch"}


def test_a_record_has_the_same_fate_in_any_company() -> None:
    payloads = [
        payload(small=n if n % 3 else "x", size="x" if n % 5 == 0 else n) for n in range(40)
    ]
    together = decode(SCHEMA, payloads, connection=DROPS).fates
    assert together == [decode(SCHEMA, [one], connection=DROPS).fates[0] for one in payloads]
    assert pa.array([fate["small"] for fate in together]).null_count == 14
