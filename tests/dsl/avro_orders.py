"""Orders as Avro, in each framing, and a table for them."""

import datetime
import io
from decimal import Decimal
from typing import Any

import fastavro

from lakebed.decoding.engines import Resources
from lakebed.model.schema import schema_of
from lakebed.ports.schema_registry import SchemaRegistry
from tests.dsl.decoding import Outcome, decode

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
