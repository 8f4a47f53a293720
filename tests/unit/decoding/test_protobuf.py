"""Protobuf payloads, read by a descriptor set."""

import datetime
import random
from typing import Any

import pytest

from lakebed.decoding.engines import Resources
from lakebed.errors import InvalidError
from lakebed.model.schema import schema_of
from tests.dsl.decoding import Outcome, decode

pytest.importorskip("google.protobuf.message_factory")

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, timestamp_pb2

SCHEMA = schema_of(
    row_keys={"id": "int64"},
    values={
        "name": "string?",
        "kind": "string?",
        "kind_number": "int32?",
        "at": "timestamp[us, UTC]?",
        "raw": "binary?",
        "size": "float64?",
        "tags": {"list": "string"},
        "m": {"map": ["string", "int64"]},
        "s": {"struct": [{"name": "city", "type": "string"}]},
        "zip": "int32?",
    },
)
CONNECTION = {
    "columns": {
        **{name: name for name in ("id", "name", "kind", "at", "raw", "size", "tags", "m")},
        "kind_number": "other_kind",
        "s": "address",
        "zip": "home.zip",
    }
}
F = descriptor_pb2.FieldDescriptorProto


def descriptors(syntax: str = "proto3") -> descriptor_pb2.FileDescriptorSet:
    file = descriptor_pb2.FileDescriptorProto(
        name="order.proto",
        package="shop",
        syntax=syntax,
        dependency=["google/protobuf/timestamp.proto"],
    )
    kind = file.enum_type.add(name="Kind")
    kind.value.add(name="NONE", number=0)
    kind.value.add(name="WEB", number=1)
    address = file.message_type.add(name="Address")
    address.field.add(name="city", number=1, type=F.TYPE_STRING, label=F.LABEL_OPTIONAL)
    address.field.add(name="zip", number=2, type=F.TYPE_INT32, label=F.LABEL_OPTIONAL)
    order = file.message_type.add(name="Order")
    entry = order.nested_type.add(name="MEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=F.TYPE_STRING, label=F.LABEL_OPTIONAL)
    entry.field.add(name="value", number=2, type=F.TYPE_INT64, label=F.LABEL_OPTIONAL)
    label = F.LABEL_REQUIRED if syntax == "proto2" else F.LABEL_OPTIONAL
    order.field.add(name="id", number=1, type=F.TYPE_INT64, label=label)
    order.field.add(
        name="name",
        number=2,
        type=F.TYPE_STRING,
        label=F.LABEL_OPTIONAL,
        proto3_optional=syntax == "proto3",
        **({"oneof_index": 0} if syntax == "proto3" else {}),
    )
    for number, name, type_, of in [
        (3, "kind", F.TYPE_ENUM, ".shop.Kind"),
        (4, "other_kind", F.TYPE_ENUM, ".shop.Kind"),
        (5, "at", F.TYPE_MESSAGE, ".google.protobuf.Timestamp"),
        (6, "raw", F.TYPE_BYTES, ""),
        (7, "size", F.TYPE_DOUBLE, ""),
        (10, "address", F.TYPE_MESSAGE, ".shop.Address"),
        (11, "home", F.TYPE_MESSAGE, ".shop.Address"),
    ]:
        order.field.add(
            name=name, number=number, type=type_, label=F.LABEL_OPTIONAL, type_name=of or None
        )
    order.field.add(name="tags", number=8, type=F.TYPE_STRING, label=F.LABEL_REPEATED)
    order.field.add(
        name="m",
        number=9,
        type=F.TYPE_MESSAGE,
        label=F.LABEL_REPEATED,
        type_name=".shop.Order.MEntry",
    )
    if syntax == "proto3":
        order.oneof_decl.add(name="_name")
    stamp = descriptor_pb2.FileDescriptorProto()
    timestamp_pb2.DESCRIPTOR.CopyToProto(stamp)
    return descriptor_pb2.FileDescriptorSet(file=[stamp, file])


SET = descriptors()


def new(files: descriptor_pb2.FileDescriptorSet = SET) -> Any:  # noqa: ANN401 - made at run time
    pool = descriptor_pool.DescriptorPool()
    for file in files.file:
        pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Order"))()


def whole() -> Any:  # noqa: ANN401 - see `new`
    message = new()
    message.id, message.name, message.kind, message.other_kind = 7, "a", 1, 1
    message.at.FromJsonString("2024-02-29T01:02:03.000456Z")
    message.raw, message.size = b"\x00\xff", 0.1
    message.tags.extend(["x", "y"])
    message.m["k"] = 2**40
    message.address.city, message.home.zip = "Ulm", 89073
    return message


ROW = {
    "id": 7,
    "name": "a",
    "kind": "WEB",
    "kind_number": 1,
    "at": datetime.datetime(2024, 2, 29, 1, 2, 3, 456, tzinfo=datetime.UTC),
    "raw": b"\x00\xff",
    "size": 0.1,
    "tags": ["x", "y"],
    "m": [("k", 2**40)],
    "s": {"city": "Ulm"},
    "zip": 89073,
}


def protobuf(
    payloads: list[bytes],
    files: descriptor_pb2.FileDescriptorSet = SET,
    connection: dict[str, Any] = CONNECTION,
    **decoder: object,
) -> Outcome:
    resources = Resources(descriptors=files.SerializeToString())
    said = {"format": "protobuf", "message": "shop.Order", **decoder}
    return decode(SCHEMA, payloads, decoder=said, connection=connection, resources=resources)


def test_a_message_is_a_row() -> None:
    message = whole()
    assert protobuf([message.SerializeToString()]).fates == [ROW]


def test_what_is_not_there_is_null_where_messages_can_say_so() -> None:
    message = new()
    message.address.city = ""
    (fate,) = protobuf([message.SerializeToString()]).fates
    assert (fate["id"], fate["name"], fate["at"], fate["zip"]) == (0, None, None, None)
    assert (fate["kind"], fate["raw"], fate["tags"], fate["m"]) == ("NONE", b"", [], [])
    assert fate["s"] == {"city": ""}
    assert protobuf([new().SerializeToString(), b"\x08\x01"]).fates == [
        "null-in-required",
        "missing-field",
    ]


def test_what_is_no_message_is_a_verdict() -> None:
    good = whole().SerializeToString()
    payloads = [good[:-1], b"\xff", b"\x12\x01\xff", b"\x08", good]
    fates = protobuf(payloads).fates
    assert fates == ["unparsable"] * 4 + [ROW]


def test_a_required_field_that_is_missing_is_a_verdict() -> None:
    files = descriptors("proto2")
    message = new(files)
    message.name = "a"
    assert protobuf([message.SerializePartialToString()], files).fates == ["missing-field"]


def test_unknown_fields_are_counted_or_refused() -> None:
    payload = whole().SerializeToString() + b"\xa0\x06\x05"
    connection = CONNECTION | {"unknown": "quarantine"}
    refused = protobuf([payload, whole().SerializeToString()], connection=connection)
    assert refused.fates == ["unknown-field", ROW]
    assert refused.decoded.unknown == {"#100": 1}


def test_an_enum_number_without_a_name_is_kept_as_a_number() -> None:
    message = whole()
    message.other_kind = 9
    assert protobuf([message.SerializeToString()]).fates == [ROW | {"kind_number": 9}]
    message.kind = 9
    assert protobuf([message.SerializeToString()]).fates == ["type-mismatch"]


def test_hostile_bytes_are_verdicts_and_nothing_else() -> None:
    rng = random.Random(7)
    good = whole().SerializeToString()
    payloads = []
    for _ in range(400):
        data = bytearray(good)
        for _ in range(rng.randint(1, 4)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        payloads.append(bytes(data))
    assert len(protobuf(payloads).fates) == 400


@pytest.mark.parametrize(
    ("decoder", "columns", "said"),
    [
        ({"message": "shop.Oder"}, {}, "did you mean 'shop.Order'"),
        ({}, {"name": "nam"}, "did you mean 'name'"),
        ({}, {"name": "home.cty"}, "did you mean 'city'"),
        ({}, {"tags": "raw", "raw": "tags.x"}, "leads into a value"),
        ({}, {"size": "zip", "kind_number": "size.x"}, "leads into a value|no such field"),
    ],
)
def test_what_can_never_be_read_is_refused(
    decoder: dict[str, Any], columns: dict[str, str], said: str
) -> None:
    with pytest.raises(InvalidError, match=said):
        protobuf([], connection={"columns": CONNECTION["columns"] | columns}, **decoder)


def test_bytes_that_are_no_descriptor_set_are_refused() -> None:
    for data in (b"\xff", b""):
        with pytest.raises(InvalidError):
            decode(
                SCHEMA,
                [],
                decoder={"format": "protobuf", "message": "shop.Order"},
                connection=CONNECTION,
                resources=Resources(descriptors=data),
            )
