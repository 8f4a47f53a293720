"""Which values of a record become which columns, and what the record itself gives."""

import datetime
from typing import Any

import pytest

from lakebed.errors import InvalidError
from lakebed.model.schema import schema_of
from tests.dsl.decoding import decode

ORDERS = schema_of(
    row_keys={"id": "int64"}, values={"amount": "float64", "city": "string?", "note": "string?"}
)
COLUMNS = {"id": "id", "amount": "payload.amount", "city": "payload.address.city"}
WANTED = {"id": 1, "amount": 2.5, "city": "Ulm", "note": None}


def test_values_are_taken_from_their_paths() -> None:
    payloads = [
        b'{"id":1,"payload":{"amount":2.5,"address":{"city":"Ulm","zip":[1]},"x":1},"y":{}}',
        b'{"payload":{"address":null,"amount":2.5},"id":1}',
        b'{"id":1,"payload":{"address":{"city":"Ulm"}}}',
        b'{"id":1,"payload":null}',
        b'{"id":1,"payload":{"amount":null}}',
        b'{"id":1,"payload":[]}',
        b'{"id":1,"payload":{"amount":1,"amount":2}}',
        b'{"id":1,"payload":{"amount":1},"payload":{"amount":2}}',
        b'{"id":1,"payload":{"amount":"1"}}',
    ]
    outcome = decode(ORDERS, payloads, connection={"columns": COLUMNS})
    assert outcome.fates == [
        WANTED,
        WANTED | {"city": None},
        "missing-field",
        "missing-field",
        "null-in-required",
        "type-mismatch",
        "duplicate-field",
        "duplicate-field",
        "type-mismatch",
    ]
    assert outcome.detail(2) == "amount"
    assert outcome.detail(6) == "payload.amount"
    assert outcome.decoded.unknown == {}, "what was left out on purpose is not counted"


def test_a_name_may_hold_a_dot() -> None:
    columns = {"id": r"a\.b.c\.d", "amount": "amount"}
    payload = b'{"a.b":{"c.d":1},"amount":2.5,"a":{"b":5}}'
    fates = decode(ORDERS, [payload], connection={"columns": columns}).fates
    assert fates == [WANTED | {"city": None}]


def test_two_columns_may_have_one_value() -> None:
    columns = {"id": "id", "amount": "amount", "city": "text", "note": "text"}
    payload = b'{"id":1,"amount":2.5,"text":"Ulm"}'
    fates = decode(ORDERS, [payload], connection={"columns": columns}).fates
    assert fates == [WANTED | {"note": "Ulm"}]


def test_unknown_fields_are_refused_below_a_path_too() -> None:
    connection = {"columns": COLUMNS, "unknown": "quarantine"}
    payloads = [b'{"id":1,"payload":{"amount":1,"x":1}}', b'{"id":1,"payload":{"amount":1}}']
    fates = decode(ORDERS, payloads, connection=connection).fates
    assert fates == ["unknown-field", {"id": 1, "amount": 1.0, "city": None, "note": None}]


def test_a_row_can_say_where_it_is_from_and_hold_its_record() -> None:
    schema = schema_of(
        row_keys={"_split": "string", "_position": "int64"},
        values={
            "_version": "int64",
            "_key": "binary?",
            "_headers": {"map": ["string", "binary"]},
            "_time": "timestamp[us, UTC]?",
            "event": "string",
            "id": "int64?",
        },
    )
    connection = {"lineage": True, "meta": ["key", "headers", "time"], "rest": "event"}
    at = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)
    outcome = decode(
        schema,
        [b'{"id": 5, "x": [1]}', b"{", b"{}"],
        connection=connection,
        version=3,
        key=[b"k\xff", None, None],
        headers=[[("h", b"1"), ("h", b"2")], [], []],
        time=[at, at, None],
    )
    assert outcome.fates[1] == "unparsable"
    assert outcome.fates[0] == {
        "_split": "split-7",
        "_position": 0,
        "_version": 3,
        "_key": b"k\xff",
        "_headers": [("h", b"1"), ("h", b"2")],
        "_time": at,
        "event": '{"id": 5, "x": [1]}',
        "id": 5,
    }
    assert outcome.fates[2]["_position"] == 2
    assert outcome.fates[2]["_time"] is None


@pytest.mark.parametrize(
    ("connection", "decoder", "said"),
    [
        ({"columns": {"idd": "id"}}, {}, ["connection.c.columns.idd", "did you mean 'id'"]),
        ({"columns": {"id": "id"}}, {}, ["connection.c.columns.amount", "no source"]),
        ({"columns": {"id": "a..b"}}, {}, ["connection.c.columns.id", "a..b"]),
        ({"column": {}}, {}, ["connection.c.column", "did you mean 'columns'"]),
        ({"nulls": "keep"}, {}, ["connection.c", "keep"]),
        ({"meta": ["keys"]}, {}, ["connection.c", "keys"]),
        ({"meta": ["key"]}, {}, ["connection.c.meta", "_key", "binary or string"]),
        ({"lineage": True}, {}, ["connection.c.lineage", "_split"]),
        ({"rest": "event"}, {}, ["connection.c.rest", "event"]),
        ({"rest": "amount"}, {}, ["connection.c.rest", "float64", "string or binary"]),
        (
            {"columns": {"id": {"path": "id", "as": "ms"}, "amount": "amount"}},
            {},
            ["connection.c.columns.id.as", "timestamp[us, UTC]"],
        ),
        ({"columns": {"id": {"pfad": "id"}}}, {}, ["connection.c.columns.id.pfad", "path"]),
        (
            {"columns": {"id": "a", "amount": "a"}},
            {},
            ["connection.c.columns.amount", "two ways", "columns.id"],
        ),
        (
            {"columns": {"id": "id", "amount": "a", "city": "a.city"}},
            {},
            ["connection.c.columns.city", "a.city", "columns.amount"],
        ),
        ({}, {"time": {"path": "id", "as": "iso"}}, ["columns.id", "decoder.time.path"]),
        ({}, {"time": {"path": "t", "az": "ms"}}, ["feed.f.decoder.time.az", "settings: as, path"]),
        ({}, {"format": "jsn"}, ["feed.f.decoder", "jsn"]),
        ({}, {"formt": "json"}, ["feed.f.decoder.formt", "did you mean 'format'"]),
        ({}, {"record_bytes_max": 0}, ["feed.f.decoder", "record_bytes_max"]),
    ],
)
def test_what_does_not_fit_the_table_is_refused_with_its_path(
    connection: dict[str, Any], decoder: dict[str, Any], said: list[str]
) -> None:
    with pytest.raises(InvalidError) as caught:
        decode(ORDERS, [], decoder={"format": "json", **decoder}, connection=connection)
    text = str(caught.value)
    assert [part for part in said if part not in text] == [], text
