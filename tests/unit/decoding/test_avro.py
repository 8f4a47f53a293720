"""Avro payloads: behind a registry's id, as a container, and as plain data."""

import json
import random
import time
from decimal import Decimal
from typing import Any

import pytest

from lakebed.backends.memory.schema_registry import MemorySchemaRegistry
from lakebed.decoding.engines import Resources
from lakebed.errors import InvalidError, UnavailableError
from lakebed.ports.schema_registry import RegisteredSchema, SchemaId

pytest.importorskip("fastavro")

from tests.dsl.avro_orders import (
    AVRO,
    ROW,
    SCHEMA,
    VALUE,
    avro,
    container,
    datum,
    framed,
)


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
