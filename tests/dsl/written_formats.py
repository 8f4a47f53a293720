"""Records of all types, written by other libraries and by hand in each format."""

from __future__ import annotations

import base64
import csv
import datetime
import io
import json
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from uuid import UUID

import fastavro
import msgspec
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, timestamp_pb2

from lakebed.backends.memory.schema_registry import MemorySchemaRegistry
from lakebed.decoding.engines import NO_RESOURCES, Resources
from lakebed.model.schema import Schema, schema_of
from lakebed.ports.schema_registry import RegisteredSchema, SchemaId
from tests.dsl.decoding import Outcome, decode

Write = Callable[[dict[str, Any]], bytes]
SCALARS: dict[str, Any] = {
    "name": "string?",
    "size": "float64?",
    "flag": "bool?",
    "amount": "decimal128(10,2)?",
    "raw": "binary?",
    "at": "timestamp[us, UTC]?",
}
NESTED: dict[str, Any] = {
    "tags": {"list": "string"},
    "address": {"struct": [{"name": "city", "type": "string"}, {"name": "zip", "type": "int32"}]},
    "counts": {"map": ["string", "int64"]},
}
AT = datetime.datetime(2024, 2, 29, 13, 5, 9, 123_456, tzinfo=datetime.UTC)
VALUES: list[dict[str, Any]] = [
    {
        "id": 7,
        "name": "a",
        "size": 0.1,
        "flag": True,
        "amount": Decimal("12.50"),
        "raw": b"\x00\xff",
        "at": AT,
        "tags": ["x", "", "\u20ac"],
        "address": {"city": "Ulm", "zip": 89073},
        "counts": {"k": 2**40, "": -1},
    },
    {
        "id": -(2**63),
        "name": "\u00e4\n\"',;\\ \U0001f600",
        "size": -1.7976931348623157e308,
        "flag": False,
        "amount": Decimal("-99999999.99"),
        "raw": b"",
        "at": datetime.datetime(1969, 12, 31, 23, 59, 59, 999_999, datetime.UTC),
        "tags": [],
        "address": {"city": "", "zip": -(2**31)},
        "counts": {},
    },
    {
        "id": 2**63 - 1,
        "name": "plain",
        "size": 5e-324,
        "flag": True,
        "amount": Decimal("0.00"),
        "raw": bytes(range(256)),
        "at": datetime.datetime(9999, 12, 31, 23, 59, 59, tzinfo=datetime.UTC),
        "tags": ["y"] * 300,
        "address": {"city": "x" * 300, "zip": 0},
        "counts": {str(n): n for n in range(20)},
    },
]


def as_json(value: dict[str, Any]) -> bytes:
    found = dict(value)
    for name, text in (("amount", str), ("raw", encoded), ("at", datetime.datetime.isoformat)):
        if found.get(name) is not None:
            found[name] = text(found[name])
    return json.dumps(found).encode()


def encoded(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def as_msgpack(value: dict[str, Any]) -> bytes:
    return msgspec.msgpack.encode(value)


def as_csv(value: dict[str, Any]) -> bytes:
    found = dict(value)
    found["name"] = found["name"] and found["name"].replace("\n", " ")
    file = io.StringIO()
    raw, at = found["raw"], found["at"]
    csv.writer(file, lineterminator="\n").writerow(
        [
            found["id"],
            found["name"],
            repr(found["size"]) if found["size"] is not None else None,
            {True: "true", False: "false", None: None}[found["flag"]],
            found["amount"],
            None if raw is None else encoded(raw),
            None if at is None else at.isoformat(),
        ]
    )
    return file.getvalue().encode()


def read_from_csv(value: dict[str, Any]) -> dict[str, Any]:
    """An empty text is null there, and a line has no line feeds."""
    found = {name: value[name] for name in ("id", *SCALARS)}
    name = found["name"] and found["name"].replace("\n", " ")
    return found | {"name": name or None, "raw": found["raw"] or None}


AVRO: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "name", "type": ["null", "string"]},
        {"name": "size", "type": ["null", "double"]},
        {"name": "flag", "type": ["null", "boolean"]},
        {
            "name": "amount",
            "type": [
                "null",
                {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2},
            ],
        },
        {"name": "raw", "type": ["null", "bytes"]},
        {"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-micros"}]},
        {"name": "tags", "type": {"type": "array", "items": "string"}},
        {
            "name": "address",
            "type": {
                "type": "record",
                "name": "Address",
                "fields": [{"name": "city", "type": "string"}, {"name": "zip", "type": "int"}],
            },
        },
        {"name": "counts", "type": {"type": "map", "values": "long"}},
    ],
}
VERSION = UUID("12345678-1234-5678-1234-567812345678")


class Registry(MemorySchemaRegistry):
    """Knows one schema, by all ids."""

    def schema(self, id_: SchemaId) -> RegisteredSchema | None:
        return RegisteredSchema(kind="avro", text=json.dumps(AVRO))


def as_datum(value: dict[str, Any]) -> bytes:
    file = io.BytesIO()
    fastavro.schemaless_writer(file, fastavro.parse_schema(AVRO), value)
    return file.getvalue()


def as_container(value: dict[str, Any]) -> bytes:
    file = io.BytesIO()
    fastavro.writer(file, fastavro.parse_schema(AVRO), [value], codec="deflate")
    return file.getvalue()


F = descriptor_pb2.FieldDescriptorProto


def descriptor_set() -> descriptor_pb2.FileDescriptorSet:
    file = descriptor_pb2.FileDescriptorProto(
        name="order.proto",
        package="shop",
        syntax="proto3",
        dependency=["google/protobuf/timestamp.proto"],
    )
    file.message_type.add(name="Other")
    outer = file.message_type.add(name="Outer")
    outer.nested_type.add(name="First")
    order = outer.nested_type.add(name="Order")
    address = order.nested_type.add(name="Address")
    address.field.add(name="city", number=1, type=F.TYPE_STRING, label=F.LABEL_OPTIONAL)
    address.field.add(name="zip", number=2, type=F.TYPE_SINT32, label=F.LABEL_OPTIONAL)
    entry = order.nested_type.add(name="CountsEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=F.TYPE_STRING, label=F.LABEL_OPTIONAL)
    entry.field.add(name="value", number=2, type=F.TYPE_INT64, label=F.LABEL_OPTIONAL)
    order.field.add(name="id", number=1, type=F.TYPE_SFIXED64, label=F.LABEL_OPTIONAL)
    kinds = [F.TYPE_STRING, F.TYPE_DOUBLE, F.TYPE_BOOL, F.TYPE_STRING, F.TYPE_BYTES]
    for number, (name, kind) in enumerate(zip(SCALARS, kinds, strict=False)):
        order.field.add(
            name=name,
            number=number + 2,
            type=kind,
            label=F.LABEL_OPTIONAL,
            proto3_optional=True,
            oneof_index=number,
        )
        order.oneof_decl.add(name=f"_{name}")
    prefix = ".shop.Outer.Order"
    for number, name, kind, of, label in [
        (7, "at", F.TYPE_MESSAGE, ".google.protobuf.Timestamp", F.LABEL_OPTIONAL),
        (8, "tags", F.TYPE_STRING, None, F.LABEL_REPEATED),
        (9, "address", F.TYPE_MESSAGE, f"{prefix}.Address", F.LABEL_OPTIONAL),
        (10, "counts", F.TYPE_MESSAGE, f"{prefix}.CountsEntry", F.LABEL_REPEATED),
    ]:
        order.field.add(name=name, number=number, type=kind, label=label, type_name=of)
    stamp = descriptor_pb2.FileDescriptorProto()
    timestamp_pb2.DESCRIPTOR.CopyToProto(stamp)
    return descriptor_pb2.FileDescriptorSet(file=[stamp, file])


FILES = descriptor_set()
_POOL = descriptor_pool.DescriptorPool()
for _file in FILES.file:
    _POOL.Add(_file)
ORDER = message_factory.GetMessageClass(_POOL.FindMessageTypeByName("shop.Outer.Order"))


def as_protobuf(value: dict[str, Any]) -> bytes:
    found = {name: part for name, part in value.items() if part is not None}
    if "amount" in found:
        found["amount"] = str(found["amount"])
    at = found.pop("at", None)
    message = ORDER(**found)
    if at is not None:
        whole = at.replace(microsecond=0)
        message.at.seconds = int(
            (whole - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)).total_seconds()
        )
        message.at.nanos = at.microsecond * 1_000
    return message.SerializeToString()


def confluent(write: Write, more: bytes = b"") -> Write:
    return lambda value: b"\x00\x00\x00\x00\x09" + more + write(value)


def of_glue(write: Write) -> Write:
    return lambda value: b"\x03\x05" + VERSION.bytes + zlib.compress(write(value))


@dataclass(frozen=True)
class Format:
    """decoder: settings. write: by another library. by_hand: bytes of {"id": 7, "name": "a"} as the
    format's page says, with all else left out or null. is_flat: it has no lists and the like."""

    decoder: dict[str, Any]
    write: Write
    by_hand: bytes
    resources: Resources = NO_RESOURCES
    is_flat: bool = False

    @property
    def optional(self) -> tuple[str, ...]:
        """Names of fields that may be null."""
        return tuple(SCALARS)

    @property
    def schema(self) -> Schema:
        """Of a table for it."""
        values = SCALARS if self.is_flat else SCALARS | NESTED
        lineage = {"_split": "string", "_version": "int64"}
        schema = schema_of(
            row_keys={"_position": "int64"}, values={**lineage, "id": "int64?", **values}
        )
        nullable = [
            msgspec.structs.replace(field, nullable=field.name not in lineage)
            for field in schema.values
        ]
        return msgspec.structs.replace(schema, values=tuple(nullable))

    def decoded(self, payloads: list[bytes | None], **connection: object) -> Outcome:
        """Return what becomes of payloads."""
        return decode(
            self.schema,
            payloads,
            decoder=self.decoder,
            connection={"lineage": True, **connection},
            resources=self.resources,
        )


AVRO_BY_HAND = b"\x0e\x02\x02a\x00\x00\x00\x00\x00\x00\x00\x00\x00"
PROTOBUF_BY_HAND = b"\x09\x07" + b"\x00" * 7 + b"\x12\x01a"
IN_REGISTRY = Resources(registry=Registry())
DESCRIPTORS = Resources(descriptors=FILES.SerializeToString())
PROTOBUF = {"format": "protobuf", "message": "shop.Outer.Order"}
JSON = b'{"id": 7, "name": "a"}'
FORMATS = {
    "json": Format({"format": "json"}, as_json, JSON),
    "json behind an id": Format(
        {"format": "json", "framing": "registry"},
        confluent(as_json),
        b"\x00\x00\x00\x00\x01" + JSON,
    ),
    "json of Glue": Format(
        {"format": "json", "framing": "glue"}, of_glue(as_json), b"\x03\x00" + VERSION.bytes + JSON
    ),
    "avro behind an id": Format(
        {"format": "avro"},
        confluent(as_datum),
        b"\x00\x00\x00\x00\x01" + AVRO_BY_HAND,
        IN_REGISTRY,
    ),
    "avro of Glue": Format(
        {"format": "avro", "framing": "glue"},
        of_glue(as_datum),
        b"\x03\x00" + VERSION.bytes + AVRO_BY_HAND,
        IN_REGISTRY,
    ),
    "avro in containers": Format(
        {"format": "avro", "framing": "container"},
        as_container,
        b"Obj\x01\x02\x16avro.schema"
        + (len(json.dumps(AVRO)) * 2 & 0x7F | 0x80).to_bytes(1)
        + (len(json.dumps(AVRO)) >> 6).to_bytes(1)
        + json.dumps(AVRO).encode()
        + b"\x00"
        + b"s" * 16
        + b"\x02"
        + (len(AVRO_BY_HAND) * 2).to_bytes(1)
        + AVRO_BY_HAND
        + b"s" * 16,
    ),
    "avro alone": Format(
        {"format": "avro", "framing": "datum", "avro_schema": json.dumps(AVRO)},
        as_datum,
        AVRO_BY_HAND,
    ),
    "protobuf": Format(PROTOBUF, as_protobuf, PROTOBUF_BY_HAND, DESCRIPTORS),
    "protobuf behind an id": Format(
        {**PROTOBUF, "framing": "registry"},
        confluent(as_protobuf, b"\x04\x02\x02"),
        b"\x00\x00\x00\x00\x01\x04\x02\x02" + PROTOBUF_BY_HAND,
        DESCRIPTORS,
    ),
    "protobuf of Glue": Format(
        {**PROTOBUF, "framing": "glue"},
        of_glue(as_protobuf),
        b"\x03\x00" + VERSION.bytes + PROTOBUF_BY_HAND,
        DESCRIPTORS,
    ),
    "msgpack": Format({"format": "msgpack"}, as_msgpack, b"\x82\xa2id\x07\xa4name\xa1a"),
    "csv": Format(
        {"format": "text", "fields": ["id", *SCALARS]}, as_csv, b"7,a,,,,,", is_flat=True
    ),
}
