"""Avro payloads: behind a registry's id, as a container, and as plain data."""

import datetime
import io
import json
import random
from decimal import Decimal
from typing import Any

import pytest

from lakebed.backends.memory.schema_registry import MemorySchemaRegistry
from lakebed.decoding.engines import Resources
from lakebed.errors import InvalidError, UnavailableError
from lakebed.model.schema import schema_of
from lakebed.ports.schema_registry import SchemaRegistry
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


class CountingRegistry(MemorySchemaRegistry):
    asked = 0

    def schema(self, id_: int) -> str | None:
        self.asked += 1
        return super().schema(id_)


def test_a_registry_says_what_a_record_is_and_is_asked_once() -> None:
    registry = CountingRegistry()
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
    assert registry.asked == 3, "once for the known id, and twice for the unknown one"


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
    class Down:
        def schema(self, id_: int) -> str | None:
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
    from lakebed.decoding import avro_values

    monkeypatch.setattr(avro_values, "CONTAINER_BYTES_MAX", 1_000)
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
        ({}, "decoder.framing"),
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
