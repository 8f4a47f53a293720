"""MessagePack payloads: exactly one map each."""

import datetime
import math
from decimal import Decimal
from typing import Any

import msgspec
import pytest

from lakebed.model.schema import schema_of
from tests.dsl.decoding import decode

SCHEMA = schema_of(
    row_keys={"id": "int64"},
    values={
        "small": "uint8?",
        "size": "float32?",
        "amount": "decimal128(6,2)?",
        "raw": "binary?",
        "at": "timestamp[us, UTC]?",
        "day": "date32?",
        "tags": {"list": "string"},
        "s": {"struct": [{"name": "a", "type": "int32"}]},
        "m": {"map": ["string", "int64"]},
    },
)
NULLABLE = schema_of(
    row_keys={"id": "int64"}, values={"name": "string?", "size": "float64?", "big": "uint32?"}
)
MSGPACK = {"format": "msgpack"}
pack = msgspec.msgpack.encode
ENCODED = b"\x81\xa2id"


def row(id_: int, **values: object) -> dict[str, Any]:
    return {"id": id_, "name": None, "size": None, "big": None, **values}


def test_values_of_all_types_come_through() -> None:
    at = datetime.datetime(2024, 2, 29, 1, 2, 3, 456, tzinfo=datetime.UTC)
    value: dict[str, Any] = {
        "id": -(2**63),
        "small": 255,
        "size": 1.5,
        "amount": "12.5",
        "raw": b"\x00\xff",
        "at": at,
        "day": "2024-02-29",
        "tags": ["a", None],
        "s": {"a": 1, "b": 2},
        "m": {"x": 1, "y": None},
    }
    (fate,) = decode(SCHEMA, [pack(value)], decoder=MSGPACK).fates
    day = datetime.date(2024, 2, 29)
    wanted = {"amount": Decimal("12.50"), "day": day, "s": {"a": 1}, "m": [("x", 1), ("y", None)]}
    assert fate == value | wanted


@pytest.mark.parametrize(
    ("payload", "code"),
    [
        (ENCODED, "unparsable"),
        (ENCODED + b"\x01\x01", "not-one-object"),
        (ENCODED + b"\x01" + ENCODED + b"\x02", "not-one-object"),
        (b"\x93\x01\x02\x03", "not-one-object"),
        (b"\x01", "not-one-object"),
        (b"\xc1", "not-one-object"),
        (b"\x81\x01\x02", "type-mismatch"),
        (b"\x82\xa2id\x01\xa2id\x02", "duplicate-field"),
        (b"\x81\xa2id\xa1\xff", "not-utf8"),
        (b"\x82\xa2id\x01\xa4name" + b"\x91" * 5000 + b"\x01", "unparsable"),
        (b"\xdf\xff\xff\xff\xff", "unparsable"),
        (pack({"id": "1"}), "type-mismatch"),
        (pack({"id": 1.0}), "type-mismatch"),
        (pack({"id": True}), "type-mismatch"),
        (pack({"id": 2**63}), "out-of-range"),
        (pack({"id": 1, "big": -1}), "out-of-range"),
        (pack({"id": 1, "name": b"x"}), "type-mismatch"),
        (pack({"id": 1, "size": "1"}), "type-mismatch"),
        (pack({"id": None}), "null-in-required"),
        (pack({"name": "a"}), "missing-field"),
        (pack({}), "missing-field"),
    ],
)
def test_a_bad_record_gets_its_verdict(payload: bytes, code: str) -> None:
    good = pack({"id": 1, "name": "a"})
    fates = decode(NULLABLE, [good, payload, good], decoder=MSGPACK).fates
    assert fates == [row(1, name="a"), code, row(1, name="a")]


@pytest.mark.parametrize(
    "payload",
    [
        b"\x82\xa2id\x01\xa1s\x82\xa1a\x01\xa1a\x02",
        b"\x82\xa2id\x01\xa1m\x82\xa1a\x01\xa1a\x02",
        b"\x82\xa2id\x01\xa1x\x81\xa1n\x82\xa1a\x01\xa1a\x02",
    ],
)
def test_a_name_that_comes_twice_is_seen_in_what_is_wanted(payload: bytes) -> None:
    schema = schema_of(
        row_keys={"id": "int64"},
        values={
            "s": {"struct": [{"name": "a", "type": "int32"}]},
            "m": {"map": ["string", "int32"]},
            "n": {"map": ["string", "int32"]},
        },
    )
    columns = {"columns": {"id": "id", "s": "s", "m": "m", "n": "x.n"}}
    assert decode(schema, [payload], decoder=MSGPACK, connection=columns).fates == [
        "duplicate-field"
    ]


def test_numbers_are_those_of_python() -> None:
    values = [0.1, -0.0, 5e-324, math.inf, math.nan, 3]
    fates = decode(NULLABLE, [pack({"id": 1, "size": v}) for v in values], decoder=MSGPACK).fates
    assert [repr(fate["size"]) for fate in fates] == [repr(float(v)) for v in values]


def test_times_come_as_times_numbers_or_texts() -> None:
    at = datetime.datetime(2024, 2, 29, tzinfo=datetime.UTC)
    for way, values in {
        "ms": [at, 1709164800000, "1709164800000"],
        "auto": [at, 1709164800, 1709164800.0],
        "ns": [at, 1709164800000000000],
        "iso": [at, "2024-02-29T00:00:00Z"],
    }.items():
        decoder = {**MSGPACK, "time": {"path": "a.t", "as": way}}
        payloads = [pack({"id": 1, "a": {"t": value}}) for value in values]
        bad = [pack({"id": 1, "a": {"t": b"x"}}), pack({"id": 1, "a": {}}), pack({"id": 1, "a": 1})]
        outcome = decode(NULLABLE, [*payloads, *bad], decoder=decoder)
        assert outcome.decoded.time.to_pylist() == [at] * len(values)
        assert outcome.fates[-3:] == ["time-unreadable", "time-unreadable", "type-mismatch"]


def test_unknown_fields_are_counted_or_refused() -> None:
    payloads = [pack({"id": 1, "x": {"y": 1}}), pack({"id": 2})]
    outcome = decode(NULLABLE, payloads, decoder=MSGPACK)
    assert (outcome.fates, outcome.decoded.unknown) == ([row(1), row(2)], {"x": 1})
    refused = decode(NULLABLE, payloads, decoder=MSGPACK, connection={"unknown": "freeze"})
    assert (refused.fates, refused.decoded.unknown) == (["unknown-field", row(2)], {"x": 1})
