"""Avro payloads: behind a registry's id, as a container, and as plain data."""

import datetime
import io
import json
import random
import time
from decimal import Decimal
from typing import Any

import pytest

from lakebed.backends.memory.schema_registry import MemorySchemaRegistry
from lakebed.decoding.engines import Resources
from lakebed.errors import InvalidError, UnavailableError
from lakebed.model.schema import schema_of
from lakebed.ports.schema_registry import RegisteredSchema, SchemaId, SchemaRegistry
from tests.dsl.decoding import Outcome, decode

fastavro = pytest.importorskip("fastavro")

SCHEMA = schema_of(
    row_keys={"id": "int64"},
    values={
        "name": "string?",
        "at": "timestamp[us, UTC]?",
        "amount": "decimal128(6,2)?",
        "tags": {"list": "string"},
        "m": {"map": ["string", "int64"]},
        "s": {"struct": [{"name": "a", "type": "int32"}]},
    },
)
AVRO: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "name", "type": ["null", "string"], "default": None},
        {"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-micros"}]},
        {
            "name": "amount",
            "type": {"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2},
        },
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {"name": "m", "type": {"type": "map", "values": ["null", "long"]}},
        {
            "name": "s",
            "type": {"type": "record", "name": "S", "fields": [{"name": "a", "type": "int"}]},
        },
        {"name": "more", "type": "double"},
    ],
}
AT = datetime.datetime(2024, 2, 29, 1, 2, 3, 456, tzinfo=datetime.UTC)
VALUE: dict[str, Any] = {
    "id": 7,
    "name": "a",
    "at": AT,
    "amount": Decimal("12.50"),
    "tags": ["x", "y"],
    "m": {"k": 1, "n": None},
    "s": {"a": 5},
    "more": 1.0,
}
ROW = {name: VALUE[name] for name in VALUE if name != "more"} | {"m": [("k", 1), ("n", None)]}


def datum(value: object = VALUE, schema: object = AVRO) -> bytes:
    file = io.BytesIO()
    fastavro.schemaless_writer(file, fastavro.parse_schema(schema), value)
    return file.getvalue()


def container(values: list[Any], codec: str = "null") -> bytes:
    file = io.BytesIO()
    fastavro.writer(file, fastavro.parse_schema(AVRO), values, codec=codec)
    return file.getvalue()


def framed(id_: int, data: bytes) -> bytes:
    return b"\x00" + id_.to_bytes(4, "big") + data


def avro(
    payloads: list[bytes], registry: SchemaRegistry | None = None, **decoder: object
) -> Outcome:
    resources = Resources(registry=registry)
    return decode(SCHEMA, payloads, decoder={"format": "avro", **decoder}, resources=resources)


def test_a_registry_says_what_a_record_is() -> None:
    registry = MemorySchemaRegistry()
    id_ = registry.register(json.dumps(AVRO))
    good = framed(id_, datum())
    payloads = [good, framed(99, datum()), b"\x00\x00", b"\x01" + good[1:], good[:-1], good + b"\0"]
    outcome = avro(payloads, registry)
    assert outcome.fates == [
        ROW,
        "schema-unknown",
        "unparsable",
        "unparsable",
        "unparsable",
        "not-one-object",
    ]
    assert outcome.decoded.unknown == {"more": 1}


def test_an_id_that_is_registered_later_is_known_then() -> None:
    registry = MemorySchemaRegistry()
    made = Resources(registry=registry)
    from lakebed.config.decoders import ColumnsOf, DecoderSettings
    from lakebed.decoding.engines import decoder_of
    from tests.dsl.decoding import outcome_of, records_of

    decoder = decoder_of(DecoderSettings(format="avro"), ColumnsOf(), SCHEMA, resources=made)
    records = records_of([framed(1, datum())])
    assert outcome_of(decoder.decode(records)).fates == ["schema-unknown"]
    registry.register(json.dumps(AVRO))
    assert outcome_of(decoder.decode(records)).fates == [ROW]


def test_a_registry_that_is_down_is_no_verdict() -> None:
    class Down(MemorySchemaRegistry):
        def schema(self, id_: SchemaId) -> RegisteredSchema | None:
            raise UnavailableError("the registry does not answer")

    with pytest.raises(UnavailableError):
        avro([framed(1, datum())], Down())


@pytest.mark.parametrize("codec", ["null", "deflate"])
def test_a_container_holds_exactly_one_record(codec: str) -> None:
    one = container([VALUE], codec)
    payloads = [one, container([VALUE] * 2), container([]), one + b"x", one[:-1], b"Obj\x01", b"{}"]
    fates = avro(payloads, framing="container").fates
    assert fates[0] == ROW
    assert fates[1] == "not-one-object"
    assert set(fates[2:]) <= {"unparsable", "not-one-object"}


def test_a_container_that_grows_without_end_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    from lakebed.decoding.registered import frames

    monkeypatch.setattr(frames, "INFLATED_BYTES_MAX", 1_000)
    payload = container([VALUE | {"name": "a" * 100_000}], "deflate")
    assert avro([payload, container([VALUE], "deflate")], framing="container").fates == [
        "too-large",
        ROW,
    ]


def test_plain_data_are_read_by_the_schema_of_the_definition() -> None:
    data = datum()
    outcome = avro([data, data[:5], data * 2], framing="datum", avro_schema=json.dumps(AVRO))
    assert outcome.fates == [ROW, "unparsable", "not-one-object"]


def test_values_that_do_not_fit_the_table_are_verdicts() -> None:
    def changed(field: str, type_: object, value: object) -> bytes:
        fields = [
            f if f["name"] != field else {"name": field, "type": type_} for f in AVRO["fields"]
        ]
        return framed(
            registry.register(json.dumps(AVRO | {"fields": fields})),
            datum(VALUE | {field: value}, AVRO | {"fields": fields}),
        )

    registry = MemorySchemaRegistry()
    payloads = [
        changed("id", "string", "7"),
        changed("id", ["null", "long"], None),
        changed("name", "bytes", b"\xff"),
        changed("tags", {"type": "array", "items": "long"}, [1]),
        changed("s", {"type": "map", "values": "long"}, {"a": 2**40}),
        changed("at", "string", "yesterday"),
        changed("at", "string", "2024-02-29T01:02:03.000456Z"),
    ]
    assert avro(payloads, registry).fates == [
        "type-mismatch",
        "null-in-required",
        "type-mismatch",
        "type-mismatch",
        "out-of-range",
        "time-unreadable",
        ROW,
    ]


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


HOSTILE_SCHEMAS = {
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
    payload = own_container(HOSTILE_SCHEMAS[said], b"\x02" * 50)
    good = container([VALUE])
    fates = avro([payload, good], framing="container").fates
    assert fates == ["schema-unknown", ROW]


def test_a_decimal_is_read_whole_and_one_of_megabytes_costs_no_time() -> None:
    registry = MemorySchemaRegistry()
    type_ = {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}
    fields = [
        f if f["name"] != "amount" else {"name": "amount", "type": type_} for f in AVRO["fields"]
    ]
    other = AVRO | {"fields": [*fields, {"name": "huge", "type": type_}]}
    raw = [f | {"type": "bytes"} if f["name"] in {"amount", "huge"} else f for f in other["fields"]]
    id_ = registry.register(json.dumps(other))

    def written(amount: bytes, huge: bytes) -> bytes:
        value = VALUE | {"amount": amount, "huge": huge}
        return framed(id_, datum(value, AVRO | {"fields": raw}))

    payloads = [
        written(b"\x01\xe2\x40", b"\x7f" * 4_000_000),  # 1234.56, of which four digits are allowed
        written(b"\x7f" * 4_000_000, b"\x01"),
        written(b"\x00" * 100 + b"\x04\xe2", b""),
    ]
    begun = time.monotonic()
    assert avro(payloads, registry).fates == [
        ROW | {"amount": Decimal("1234.56")},
        "out-of-range",
        ROW | {"amount": Decimal("12.50")},
    ]
    assert time.monotonic() - begun < 20


def test_records_whose_schema_cannot_be_read_by_leave_nothing_behind() -> None:
    import gc

    registry = MemorySchemaRegistry()
    payload = framed(registry.register("5"), b"\x02" * 100)
    avro([payload] * 10, registry)
    gc.collect()
    before = len(gc.get_objects())
    avro([payload] * 2_000, registry)
    gc.collect()
    assert len(gc.get_objects()) - before < 1_000


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


@pytest.mark.parametrize("text", ["", "{", "5", '"nonsense"', '{"type": "record"}', "[" * 5000])
def test_a_schema_that_is_none_is_a_verdict(text: str) -> None:
    registry = MemorySchemaRegistry()
    assert avro([framed(registry.register(text), b"\x02")], registry).fates[0] in (
        "schema-unknown",
        "not-one-object",
    )


def test_hostile_bytes_are_verdicts_and_nothing_else() -> None:
    registry = MemorySchemaRegistry()
    id_ = registry.register(json.dumps(AVRO))
    rng = random.Random(5)
    good = datum()
    payloads = []
    for _ in range(400):
        data = bytearray(good)
        for _ in range(rng.randint(1, 4)):
            data[rng.randrange(len(data))] = rng.choice([0, 0x7F, 0x80, 0xFF, rng.randrange(256)])
        payloads.append(framed(id_, bytes(data)))
    outcome = avro(payloads, registry)
    assert len(outcome.fates) == 400
    containers = [bytes([*container([VALUE])[: rng.randrange(300)]]) for _ in range(50)]
    assert all(isinstance(f, str) for f in avro(containers, framing="container").fates)


@pytest.mark.parametrize(
    ("decoder", "said"),
    [
        ({}, "https://"),
        ({"framing": "datum"}, "avro_schema"),
        ({"framing": "datum", "avro_schema": "{"}, "not a schema"),
        (
            {
                "framing": "datum",
                "avro_schema": json.dumps(AVRO | {"fields": [{"name": "idd", "type": "long"}]}),
            },
            "did you mean 'idd'",
        ),
    ],
)
def test_what_can_never_be_read_is_refused(decoder: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidError, match=said):
        avro([], **decoder)
