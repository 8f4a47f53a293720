"""What is decoded: each format with good records, pieces that are worth putting into others, and a
parser of our own."""

from __future__ import annotations

import io
import json
import random
import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import msgspec

from lakebed.backends.memory.schema_registry import MemorySchemaRegistry
from lakebed.config.decoders import ColumnsOf, decoder_settings_of
from lakebed.decoding.decoder import Decoder
from lakebed.decoding.engines import NO_RESOURCES, Resources, decoder_of
from lakebed.model.schema import Schema
from tests.adversary.hostile_records import parsers
from tests.adversary.hostile_records.fresh_records import container_of_any_schema, json_object
from tests.adversary.hostile_records.parsers import BAD, SCHEMA, Parser

VALUES: Sequence[dict[str, Any]] = [
    {"id": 7, "name": "a", "size": 1.5, "flag": True},
    {"id": -(2**63), "name": "\u00e4\u20ac\U0001f600", "size": -0.0, "flag": False},
    {"id": 2**63 - 1, "name": "", "size": 1e308, "flag": True},
    {"id": 0, "name": None, "size": 5e-324, "flag": False},
    {"id": 300, "name": 'x,"y"', "size": 12345.678, "flag": True},
]


NO_COLUMNS = ColumnsOf()


@dataclass(frozen=True)
class Form:
    """A format under test.

    good: records that are rows, or nearly.
    pieces: bytes that mean something in it.
    fresh: makes another record of each call.
    """

    name: str
    decoder: dict[str, Any]
    parse: Parser
    good: Sequence[bytes]
    pieces: Sequence[bytes]
    resources: Resources = NO_RESOURCES
    fresh: Callable[[random.Random], bytes] | None = None
    schema: Schema = SCHEMA
    connection: ColumnsOf = NO_COLUMNS

    def made(self) -> Decoder:
        """Return its decoder."""
        settings = decoder_settings_of(self.decoder, at="decoder")
        return decoder_of(settings, self.connection, self.schema, resources=self.resources)


def forms() -> dict[str, Form]:
    """Return all of them by name."""
    found = [_json(), _text(), _msgpack(), *_avro(), *_protobuf(), *_wide()]
    json_form = found[0]
    found.append(_framed(json_form, "json-registry", {"format": "json", "framing": "registry"}))
    found.append(_json_of_glue(json_form))
    return {form.name: form for form in found}


def _json() -> Form:
    good = [json.dumps(value).encode() for value in VALUES]
    good += [json.dumps(value, ensure_ascii=False).encode() for value in VALUES]
    good += [
        b'{"id": 1.0, "size": 1e2}',
        b'{"id": "5", "name": "\\ud83d\\ude00\\n", "other": [1, {"a": null}]}',
        b' {"id":1,\n"flag":null}\r\n',
        b'{"id": 1, "size": 123456789012345678901234567890}',
    ]
    words = (
        b'{ } [ ] " , : null true NaN Infinity -0 1e999 \\u0000 \\ud800 \\ {}{} \x01 \x00 "id":1'
    )
    pieces = [*words.split(), b"\n", b" ", b"\xff", b"\xef\xbb\xbf", b"[" * 3_000, b'{"a":' * 500]
    return Form("json", {"format": "json"}, parsers.json_row, good, pieces, fresh=json_object)


def _text() -> Form:
    good = [
        b"7,a,1.5,true",
        b"0,,,",
        b"-5,x y,2e3,false\n",
        b"9223372036854775807,\xc3\xa4,0.1,true\r\n",
    ]
    pieces = [b",", b'"', b'""', b"\n", b"\r", b"\0", b"\xff", b" ", b"NaN", b"-", b"9" * 30, b"\t"]
    decoder = {"format": "text", "fields": list(parsers.NAMES)}
    return Form("text", decoder, parsers.text_row, good, pieces)


def _msgpack() -> Form:
    good = [msgspec.msgpack.encode(value) for value in VALUES]
    good += [msgspec.msgpack.encode({"id": 1, "more": [1, {"a": b"x"}, "y"], "size": 3})]
    pieces = [bytes([byte]) for byte in (0x80, 0x81, 0x8F, 0xC0, 0xC1, 0xDE, 0xDF, 0xDD, 0xC7)]
    pieces += [b"\xa2id", b"\xdf\xff\xff\xff\xff", b"\xdb\xff\xff\xff\xff", b"\x91" * 2_000]
    pieces += [b"\xd6\xff\x00\x00\x00\x01", b"\xcf" + b"\xff" * 8, b"\xcb\x7f\xf0" + b"\0" * 6]
    return Form("msgpack", {"format": "msgpack"}, parsers.msgpack_row, good, pieces)


AVRO_FIELDS: list[dict[str, Any]] = [
    {"name": "id", "type": "long"},
    {"name": "name", "type": ["null", "string"]},
    {"name": "size", "type": "double"},
    {"name": "flag", "type": "boolean"},
    {"name": "tags", "type": {"type": "array", "items": "string"}},
]
AVRO: dict[str, Any] = {"type": "record", "name": "R", "fields": AVRO_FIELDS}


def _avro() -> list[Form]:
    import fastavro

    schema = fastavro.parse_schema(AVRO)
    data = []
    for value in VALUES:
        file = io.BytesIO()
        fastavro.schemaless_writer(file, schema, value | {"tags": ["a", "bc"]})
        data.append(file.getvalue())
    longs = [
        b"\x00",
        b"\x01",
        b"\x02",
        b"\xff" * 9 + b"\x01",
        b"\xfe\xff\xff\xff\x0f",
        b"\x80" * 12,
    ]
    registry = MemorySchemaRegistry()
    head = b"\0" + registry.register(json.dumps(AVRO)).to_bytes(4, "big")
    decoder = {"format": "avro", "framing": "datum", "avro_schema": json.dumps(AVRO)}
    return [
        Form("avro", decoder, parsers.avro_row, data, longs),
        Form(
            "avro-registry",
            {"format": "avro"},
            lambda payload: parsers.avro_row(payload[5:]) if payload[:5] == head else BAD,
            [head + one for one in data],
            [*longs, head],
            Resources(registry=registry),
        ),
        *_containers(data),
    ]


def _containers(data: list[bytes]) -> Iterator[Form]:
    """Yield containers, whose schemas are as hostile as their data: nothing is known of their rows.
    They are read by their own schema, and by one of ours."""
    import fastavro

    good = []
    for codec in ("null", "deflate"):
        for value in VALUES:
            file = io.BytesIO()
            fastavro.writer(file, AVRO, [value | {"tags": []}], codec=codec)
            good.append(file.getvalue())
    words = """"R" "null" "long" "string" "bytes" "fixed" "size":-1 "items" "record" "fields":[]
        "enum" "symbols":[] "logicalType":"decimal","scale":9 {"type":"R"} [ ] { } , : 99999999"""
    pieces = [word.encode() for word in words.split()]
    pieces += [
        b'"__fastavro_parsed":true,',
        b'"logicalType":"uuid",',
        b'"type":"map","values":"R",',
    ]
    for name, more in (("", {}), ("-ours", {"avro_schema": json.dumps(AVRO)})):
        yield Form(
            f"avro-container{name}",
            {"format": "avro", "framing": "container", **more},
            lambda _: parsers.UNSURE,
            good,
            [*pieces, *data],
            fresh=container_of_any_schema,
        )


def _protobuf() -> list[Form]:
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    kinds = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="r.proto", package="h", syntax="proto3")
    message = file.message_type.add(name="R")
    types = [kinds.TYPE_INT64, kinds.TYPE_STRING, kinds.TYPE_DOUBLE, kinds.TYPE_BOOL]
    for number, (name, type_) in enumerate(zip(parsers.NAMES, types, strict=True), 1):
        message.field.add(
            name=name,
            number=number,
            type=type_,
            label=kinds.LABEL_OPTIONAL,
            proto3_optional=True,
            oneof_index=number - 1,
        )
    for name in parsers.NAMES:
        message.oneof_decl.add(name=f"_{name}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    new = message_factory.GetMessageClass(pool.FindMessageTypeByName("h.R"))
    good = [
        new(**{n: v for n, v in value.items() if v is not None}).SerializeToString()
        for value in VALUES
    ]
    good += [b"\x08\x01\x7a\x03abc\x9b\x06\x08\x01\x9c\x06", b"\x08\x01\x45abcd\x81\x0112345678"]
    pieces = [b"\x08", b"\x12\x05", b"\x0b", b"\x0c", b"\xff" * 10, b"\xff" * 9 + b"\x01", b"\x07"]
    pieces += [struct.pack("<d", float("nan")), b"\x1b" * 200, b"\x12\xff\xff\xff\xff\x0f", b"\x00"]
    resources = Resources(
        descriptors=descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString()
    )
    decoder = {"format": "protobuf", "message": "h.R"}
    plain = Form("protobuf", decoder, parsers.protobuf_row, good, pieces, resources)
    indexed = parsers.framed(
        lambda data: parsers.protobuf_row(data[1:]) if data[:1] == b"\0" else parsers.UNSURE
    )
    return [
        plain,
        Form(
            "protobuf-registry",
            {**decoder, "framing": "registry"},
            indexed,
            [b"\0\0\0\0\x05\0" + one for one in good],
            [*pieces, b"\0\0\0\0\x05\0"],
            resources,
        ),
    ]


def _wide() -> Iterator[Form]:
    """Yield all formats once more, for a table with columns of all types. Of its rows the parsers
    know nothing; they must be the same alone and among others."""
    from tests.dsl.written_formats import FORMATS, VALUES

    pieces = [b"\0", b"\xff", b",", b'"', b"{", b"}", b"null", b"-", b"9" * 40, b"\x80", b"1e999"]
    for name, written in FORMATS.items():
        nulls = dict.fromkeys(written.optional)
        yield Form(
            f"{name}, wide",
            written.decoder,
            lambda _: parsers.UNSURE,
            [written.by_hand, *map(written.write, [*VALUES, VALUES[0] | nulls])],
            pieces,
            written.resources,
            schema=written.schema,
            connection=ColumnsOf(lineage=True, nulls="write"),
        )


def _framed(form: Form, name: str, decoder: dict[str, Any]) -> Form:
    good = [b"\0\0\0\0\x05" + one for one in form.good]
    return Form(name, decoder, parsers.framed(form.parse), good, [*form.pieces, b"\0\0\0\0\x05"])


def _json_of_glue(form: Form) -> Form:
    head = UUID(int=5).bytes
    good = [b"\x03\x00" + head + one for one in form.good]
    good += [b"\x03\x05" + head + zlib.compress(one) for one in form.good]

    def parse(payload: bytes) -> object:
        if len(payload) < 18 or payload[0] != 3 or payload[1] not in {0, 5}:
            return BAD
        if payload[1] == 0:
            return form.parse(payload[18:])
        inflater = zlib.decompressobj()
        try:
            found = inflater.decompress(payload[18:])
        except zlib.error:
            return BAD
        return form.parse(found) if inflater.eof and not inflater.unused_data else BAD

    return Form(
        "json-glue", {"format": "json", "framing": "glue"}, parse, good, [*form.pieces, head]
    )
