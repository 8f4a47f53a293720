"""Schemas of Avro: hostile ones, some that refer to others, and several in one batch."""

import io
import json
from typing import Any

import pytest

from lakebed.backends.memory.schema_registry import MemorySchemaRegistry
from lakebed.decoding.engines import Resources
from lakebed.model.schema import schema_of
from tests.dsl.decoding import decode

fastavro = pytest.importorskip("fastavro")

from tests.dsl.avro_orders import (  # noqa: E402 - needs fastavro
    AVRO,
    ROW,
    VALUE,
    avro,
    container,
    datum,
    framed,
)


@pytest.mark.parametrize(
    "field",
    [
        {"type": "array", "items": "null"},
        {"type": "array", "items": {"type": "record", "name": "E", "fields": []}},
        {"type": "array", "items": {"type": "fixed", "name": "F", "size": 0}},
        ["null", "Order"],
        {"type": "array", "items": "shop.Order"},
        {"type": "map", "values": {"type": "record", "name": "Order", "fields": []}}
        | {"values": "Order"},
    ],
)
def test_a_schema_by_which_few_bytes_could_be_endless_is_not_read_by(field: object) -> None:
    registry = MemorySchemaRegistry()
    fields = [{"name": "id", "type": "long"}, {"name": "x", "type": field}]
    id_ = registry.register(json.dumps(AVRO | {"fields": fields}))
    payload = framed(id_, b"\x02" + b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f" * 3)
    assert avro([payload, framed(id_, b"")], registry).fates == ["schema-unknown"] * 2


def nested_nothing(levels: int) -> dict[str, Any]:
    """A record of no bytes that holds ten to the power of its levels."""
    form: dict[str, Any] = {"type": "record", "name": "E0", "fields": []}
    for level in range(1, levels + 1):
        first = {"name": "a", "type": form}
        again = [{"name": f"a{n}", "type": f"E{level - 1}"} for n in range(9)]
        form = {"type": "record", "name": f"E{level}", "fields": [first, *again]}
    return form


def own_container(schema: object, data: bytes) -> bytes:
    """One that no library would write."""
    header = io.BytesIO()
    fastavro.schemaless_writer(
        header, {"type": "map", "values": "bytes"}, {"avro.schema": json.dumps(schema).encode()}
    )
    long = io.BytesIO()
    fastavro.schemaless_writer(long, "long", len(data))
    sync = b"s" * 16
    return b"Obj\x01" + header.getvalue() + sync + b"\x02" + long.getvalue() + data + sync


def chained(levels: int) -> list[dict[str, Any]]:
    """Records, each of which has the one before it."""
    first = {"type": "record", "name": "A0", "fields": [{"name": "x", "type": "int"}]}
    return [first] + [
        {"type": "record", "name": f"A{n}", "fields": [{"name": "x", "type": f"A{n - 1}"}]}
        for n in range(1, levels)
    ]


HOSTILE_SCHEMAS = {
    "a chain of names that is as deep as a stack": chained(9_900),
    "says that it was parsed": {
        "__fastavro_parsed": True,
        "__named_schemas": {
            "A": {"type": "record", "name": "A", "fields": [{"name": "x", "type": "A"}]}
        },
        "type": "record",
        "name": "R",
        "fields": [{"name": "x", "type": "A"}],
    },
    "billions of records in no bytes": nested_nothing(10),
    "a list of what costs less than it becomes": {
        "type": "record",
        "name": "R",
        "fields": [
            {
                "name": "x",
                "type": {
                    "type": "array",
                    "items": {
                        "type": "record",
                        "name": "I",
                        "fields": [{"name": "b", "type": "boolean"}]
                        + [{"name": f"n{n}", "type": "null"} for n in range(100)],
                    },
                },
            }
        ],
    },
    "two types of one name": {
        "type": "record",
        "name": "R",
        "fields": [
            {"name": "a", "type": {"type": "fixed", "name": "F", "size": 1}},
            {"name": "b", "type": {"type": "fixed", "name": "F", "size": 2}},
        ],
    },
    "a negative size": {
        "type": "record",
        "name": "R",
        "fields": [{"name": "a", "type": {"type": "fixed", "name": "F", "size": -1}}],
    },
}


@pytest.mark.parametrize("said", HOSTILE_SCHEMAS)
def test_a_hostile_schema_that_comes_with_a_record_is_not_read_by(said: str) -> None:
    payload = own_container(HOSTILE_SCHEMAS[said], b"\xd6\x9a\x01" + b"\x02" * 50)
    good = container([VALUE])
    fates = avro([payload, good], framing="container").fates
    assert fates == ["schema-unknown", ROW]


def test_a_schema_may_refer_to_others() -> None:
    money = {
        "type": "record",
        "name": "S",
        "namespace": "x",
        "fields": [{"name": "a", "type": "int"}],
    }
    order = AVRO | {
        "fields": [f if f["name"] != "s" else {"name": "s", "type": "x.S"} for f in AVRO["fields"]]
        + [{"name": "list", "type": {"type": "array", "items": "x.S"}}]
    }
    registry = MemorySchemaRegistry()
    references = (json.dumps(money),)
    id_ = registry.register(json.dumps(order), references=references)
    whole = AVRO | {
        "fields": [*AVRO["fields"][:-2], {"name": "s", "type": money}, *order["fields"][-2:]]
    }
    data = datum(VALUE | {"list": [{"a": 1}, {"a": 2}]}, whole)
    union = registry.register(
        json.dumps(["null", "shop.Order"]), references=(*references, json.dumps(order))
    )
    alone = registry.register(json.dumps(order))
    payloads = [framed(id_, data), framed(union, b"\x02" + data), framed(alone, data)]
    assert avro(payloads, registry).fates == [ROW, ROW, "schema-unknown"]


def test_what_is_registered_as_something_else_is_not_read_by() -> None:
    registry = MemorySchemaRegistry()
    id_ = registry.register(json.dumps(AVRO), kind="json")
    assert avro([framed(id_, datum())], registry).fates == ["schema-unknown"]


def evolved(*changes: tuple[str, Any]) -> dict[str, Any]:
    """A schema with other types of some fields; None: without it."""
    fields = {field["name"]: field["type"] for field in AVRO["fields"]} | dict(changes)
    return AVRO | {
        "fields": [{"name": name, "type": type_} for name, type_ in fields.items() if type_]
    }


def test_records_of_several_schemas_in_one_batch_are_rows_by_name() -> None:
    schemas = [
        AVRO,
        evolved(("added", "string")),
        evolved(("name", None)),
        evolved(("id", None)),
        evolved(("id", "int"), ("m", {"type": "map", "values": "int"})),
        evolved(("name", "string")),
        AVRO | {"fields": AVRO["fields"][::-1]},
        AVRO | {"name": "Renamed", "namespace": "elsewhere"},
    ]
    registry = MemorySchemaRegistry()
    value = VALUE | {"added": "more", "m": {"k": 1}}
    payloads = [
        framed(registry.register(json.dumps(schema)), datum(value, schema)) for schema in schemas
    ]
    row = ROW | {"m": [("k", 1)]}
    wanted = [row, row, row | {"name": None}, "missing-field", row, row, row, row]
    outcome = avro([*payloads, *payloads[::-1]], registry)
    assert outcome.fates == [*wanted, *wanted[::-1]]
    assert outcome.decoded.unknown == {"more": 16, "added": 2}


def test_a_schema_of_ours_promotes_renames_and_fills_in() -> None:
    ours = {
        "type": "record",
        "name": "Order",
        "namespace": "shop",
        "fields": [
            {"name": "id", "type": "long", "aliases": ["number"]},
            {"name": "name", "type": ["null", "string"], "default": None},
            {"name": "size", "type": "double", "default": 1.5},
        ],
    }
    schema = schema_of(row_keys={"id": "int64"}, values={"name": "string?", "size": "float64?"})

    def of(fields: list[tuple[str, Any]], value: dict[str, Any]) -> bytes:
        theirs = ours | {"fields": [{"name": name, "type": type_} for name, type_ in fields]}
        return framed(registry.register(json.dumps(theirs)), datum(value, theirs))

    registry = MemorySchemaRegistry()
    outcome = decode(
        schema,
        [
            of(
                [("id", "int"), ("name", "string"), ("size", "float")],
                {"id": 1, "name": "a", "size": 0.5},
            ),
            of([("number", "int")], {"number": 2}),
            of(
                [("id", "long"), ("name", "bytes"), ("size", "long")],
                {"id": 3, "name": b"c", "size": 2},
            ),
            of([("id", "string")], {"id": "4"}),
            of([("name", "string")], {"name": "e"}),
        ],
        decoder={"format": "avro", "avro_schema": json.dumps(ours)},
        resources=Resources(registry=registry),
    )
    assert outcome.fates == [
        {"id": 1, "name": "a", "size": 0.5},
        {"id": 2, "name": None, "size": 1.5},
        {"id": 3, "name": "c", "size": 2.0},
        "type-mismatch",
        "type-mismatch",
    ]


@pytest.mark.timeout(60)
def test_a_list_that_ours_leaves_out_ends_where_its_bytes_end() -> None:
    registry = MemorySchemaRegistry()
    ours = AVRO | {"fields": AVRO["fields"][:1]}
    theirs = AVRO | {
        "fields": [
            *ours["fields"],
            {"name": "x", "type": {"type": "array", "items": "double"}},
        ]
    }
    id_ = registry.register(json.dumps(theirs))
    payloads = [
        framed(id_, b"\x0e" + count + b"\x00" * 8)
        for count in (b"\x00", b"\xfe\xff\xff\xff\xff\xff\xff\xff\x7f", b"\x04")
    ]
    payloads[0] = framed(id_, b"\x0e\x00")
    outcome = decode(
        schema_of(row_keys={"id": "int64"}),
        payloads,
        decoder={"format": "avro", "avro_schema": json.dumps(ours)},
        resources=Resources(registry=registry),
    )
    assert outcome.fates == [{"id": 7}, "unparsable", "unparsable"]


@pytest.mark.parametrize("text", ["", "{", "5", '"nonsense"', '{"type": "record"}', "[" * 5000])
def test_a_schema_that_is_none_is_a_verdict(text: str) -> None:
    registry = MemorySchemaRegistry()
    assert avro([framed(registry.register(text), b"\x02")], registry).fates[0] in (
        "schema-unknown",
        "not-one-object",
    )
