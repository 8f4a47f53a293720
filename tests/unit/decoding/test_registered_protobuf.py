"""Protobuf payloads, read by the schemas that wrote them."""

import base64
from collections.abc import Sequence
from typing import Any

import pytest

from lakebed.backends.memory.schema_registry import MemorySchemaRegistry
from lakebed.config.decoders import columns_of, decoder_settings_of
from lakebed.decoding.engines import Resources, check_registered
from lakebed.errors import InvalidError
from lakebed.model.schema import schema_of
from lakebed.ports.schema_registry import RegisteredSchema
from tests.dsl.decoding import Outcome, decode

pytest.importorskip("google.protobuf.message_factory")

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, timestamp_pb2
from google.protobuf.descriptor_pb2 import FileDescriptorProto as File

SCHEMA = schema_of(
    row_keys={"id": "int64"}, values={"at": "timestamp[us, UTC]?", "city": "string?"}
)
COLUMNS = {"columns": {"id": "id", "at": "at", "city": "home.city"}}
F = descriptor_pb2.FieldDescriptorProto
TYPES = {"int64": F.TYPE_INT64, "string": F.TYPE_STRING}


def order_file(*more: str, name: str = "order.proto", home: str = "common.Address") -> File:
    """Return a file with a message of no use, and an order of which one is inside of another."""
    needed = ["google/protobuf/timestamp.proto", "common.proto"]
    file = File(name=name, package="shop", syntax="proto3", dependency=needed)
    file.message_type.add(name="Zero")
    order = file.message_type.add(name="Order")
    add(order, "id", "int64")
    add(order, "at", "google.protobuf.Timestamp")
    add(order, "home", home)
    for one in more:
        add(order, one, "string")
    add(order.nested_type.add(name="Draft"), "id", "int64")
    return file


def common_file() -> File:
    file = File(name="common.proto", package="common", syntax="proto3")
    add(file.message_type.add(name="Address"), "city", "string")
    return file


def add(message: Any, name: str, type_: str) -> None:  # noqa: ANN401 - of protobuf's own
    number = len(message.field) + 1
    if type_ in TYPES:
        message.field.add(name=name, number=number, type=TYPES[type_], label=F.LABEL_OPTIONAL)
    else:
        message.field.add(
            name=name,
            number=number,
            type=F.TYPE_MESSAGE,
            type_name=f".{type_}",
            label=F.LABEL_OPTIONAL,
        )


def text_of(file: File) -> str:
    return base64.b64encode(file.SerializeToString()).decode()


def message(file: File, name: str, **fields: Any) -> bytes:  # noqa: ANN401 - of any type
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(timestamp_pb2.DESCRIPTOR.serialized_pb)
    for one in (common_file(), file):
        pool.Add(one)
    made = message_factory.GetMessageClass(pool.FindMessageTypeByName(name))(**fields)
    found: bytes = made.SerializeToString(deterministic=True)
    return found


class Registry(MemorySchemaRegistry):
    """A registry with files that import `common.proto`."""

    def add(self, file: File) -> int:
        references, names = (text_of(common_file()),), ("common.proto",)
        return self.register(text_of(file), kind="protobuf", references=references, names=names)


@pytest.fixture
def registry() -> Registry:
    return Registry()


def framed(id_: int, indexes: bytes, payload: bytes) -> bytes:
    return b"\x00" + id_.to_bytes(4, "big") + indexes + payload


def decoded(
    registry: Registry,
    payloads: Sequence[bytes],
    message: str = "",
    columns: dict[str, Any] | None = None,
) -> Outcome:
    decoder = {"format": "protobuf", "registry": "https://h"}
    if message:
        decoder["message"] = message
    given = COLUMNS if columns is None else columns
    resources = Resources(registry=registry)
    return decode(SCHEMA, payloads, decoder=decoder, connection=given, resources=resources)


ORDER, DRAFT = b"\x02\x02", b"\x04\x02\x00"
"""Indexes of messages, as Confluent's serializers write them."""


def test_a_record_is_read_by_the_schema_that_wrote_it(registry: Registry) -> None:
    older, newer = order_file(), order_file("note")
    ids = registry.add(older), registry.add(newer)
    first = message(older, "shop.Order", id=1, home={"city": "Rome"})
    second = message(newer, "shop.Order", id=2, at={"seconds": 86_400}, note="x")
    found = decoded(registry, [framed(ids[0], ORDER, first), framed(ids[1], ORDER, second)])
    assert [(row["id"], row["city"]) for row in found.fates] == [(1, "Rome"), (2, None)]
    assert [row["at"] and row["at"].year for row in found.fates] == [None, 1970]


def test_a_message_inside_of_another_is_one_and_what_it_lacks_is_missing(
    registry: Registry,
) -> None:
    file = order_file()
    id_ = registry.add(file)
    draft = message(file, "shop.Order.Draft", id=5)
    found = decoded(registry, [framed(id_, DRAFT, draft)])
    assert found.fates == [{"id": 5, "at": None, "city": None}]
    refused = decoded(registry, [framed(id_, b"\x00", b"")])
    assert refused.fates == ["missing-field"], "the first message of the file has no id"


def test_fields_that_no_column_takes_are_counted_by_their_names(registry: Registry) -> None:
    file = order_file("note", "other")
    payload = message(file, "shop.Order", id=1, note="x") + b"\xa2\x06\x01y"
    found = decoded(registry, [framed(registry.add(file), ORDER, payload)], columns={})
    assert found.decoded.unknown == {"note": 1, "#100": 1}


def test_only_the_message_of_the_definition_is_taken(registry: Registry) -> None:
    file = order_file()
    id_ = registry.add(file)
    order = message(file, "shop.Order", id=1)
    records = [framed(id_, ORDER, order), framed(id_, DRAFT, b"\x08\x05")]
    found = decoded(registry, records, "shop.Order")
    assert [fate["id"] if isinstance(fate, dict) else fate for fate in found.fates] == [
        1,
        "type-mismatch",
    ]


def test_what_cannot_be_read_by_is_unknown_and_harms_no_other(registry: Registry) -> None:
    file = order_file()
    payload = message(file, "shop.Order", id=1)
    good = registry.add(file)
    bad = [
        registry.register(text_of(file), kind="protobuf"),  # what it imports is not there
        registry.register(text_of(order_file(home="common.Nobody")), kind="protobuf"),
        registry.register(text_of(file), kind="avro"),
        registry.register('syntax = "proto3";', kind="protobuf"),
        registry.register(base64.b64encode(b"\xff\xff").decode(), kind="protobuf"),
        registry.register("", kind="protobuf"),
        77,
    ]
    records = [framed(id_, ORDER, payload) for id_ in (*bad, good)]
    records += [framed(good, indexes, payload) for indexes in (b"\x02\x08", b"\x04\x02\x02")]
    records += [framed(good, ORDER, payload[:-1]), b"", b"\x01", framed(good, b"", b"")]
    found = decoded(registry, records)
    unknown = "schema-unknown"
    assert [fate if isinstance(fate, str) else fate["id"] for fate in found.fates] == [
        *[unknown] * len(bad), 1, unknown, unknown,
        "unparsable", "null-in-required", "unparsable", "unparsable",
    ]  # fmt: skip


def test_a_registry_and_a_descriptor_set_are_not_given_together() -> None:
    decoder = {"format": "protobuf", "registry": "https://h", "descriptors": "x"}
    with pytest.raises(InvalidError, match=r"from a registry, and from a file .*leave one"):
        decoder_settings_of(decoder, at="feed.f.decoder")
    with pytest.raises(InvalidError, match="as text alone"):
        decoder_settings_of({"format": "protobuf", "registry": "glue"}, at="feed.f.decoder")


@pytest.mark.parametrize(
    ("file", "message", "said"),
    [
        (order_file(), "shop.Ordr", "no such message .*did you mean 'shop.Order'"),
        (order_file(), "", "no such field"),
        (order_file(home="common.Nobody"), "shop.Order", "cannot be read"),
        (File(syntax="proto3"), "", "no such message"),
    ],
)
def test_a_subject_whose_newest_schema_does_not_fit_is_refused(
    file: File, message: str, said: str
) -> None:
    with pytest.raises(InvalidError, match=said):
        check(file, message)
    check(order_file("note"), "shop.Order")


def check(file: File, message: str, kind: str = "protobuf") -> None:
    decoder = {"format": "protobuf", "registry": "https://h", "message": message}
    check_registered(
        decoder_settings_of(decoder, at="feed.f.decoder"),
        columns_of(COLUMNS, at="connection.c"),
        SCHEMA,
        RegisteredSchema(
            kind=kind,
            text=text_of(file),
            references=(text_of(common_file()),),
            names=("common.proto",),
        ),
        at="connection.c",
        subject_at="feed.f.decoder.registry.subject",
    )


def test_a_subject_of_another_kind_is_refused() -> None:
    with pytest.raises(InvalidError, match="not a schema of Protobuf"):
        check(order_file(), "shop.Order", kind="json")
