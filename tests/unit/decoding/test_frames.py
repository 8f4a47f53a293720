"""What registries put in front of records of JSON, Protobuf and Avro."""

import json
import zlib
from typing import Any
from uuid import UUID

import pytest

from lakebed.backends.memory.schema_registry import MemorySchemaRegistry
from lakebed.config.decoders import decoder_settings_of
from lakebed.decoding.engines import Resources
from lakebed.decoding.registered import frames
from lakebed.errors import InvalidError
from lakebed.model.schema import schema_of
from lakebed.ports.schema_registry import RegisteredSchema, SchemaId
from tests.dsl.decoding import Outcome, decode

SCHEMA = schema_of(row_keys={"id": "int64"}, values={"name": "string?"})
ROW = {"id": 7, "name": "a"}
JSON = b'{"id": 7, "name": "a"}'
VERSION = UUID("0123456789abcdef0123456789abcdef")


def framed(data: bytes, id_: int = 5) -> bytes:
    return b"\x00" + id_.to_bytes(4, "big") + data


def of_glue(data: bytes, compression: int = 0, version: int = 3) -> bytes:
    return bytes([version, compression]) + VERSION.bytes + data


def decoded(payloads: list[bytes | None], framing: str, **connection: object) -> Outcome:
    decoder = {"format": "json", "framing": framing}
    return decode(SCHEMA, payloads, decoder=decoder, connection=connection)


def test_json_behind_a_zero_byte_and_an_id_is_read() -> None:
    payloads = [framed(JSON), framed(JSON, 2**32 - 1), framed(b'{"id": 8}')]
    assert decoded(payloads, "registry").fates == [ROW, ROW, {"id": 8, "name": None}]


def test_json_behind_a_version_of_glue_is_read_compressed_too() -> None:
    payloads = [of_glue(JSON), of_glue(zlib.compress(JSON), 5), of_glue(JSON)]
    assert decoded(payloads, "glue").fates == [ROW, ROW, ROW]


@pytest.mark.parametrize(
    ("framing", "good", "bad"),
    [
        (
            "registry",
            framed(JSON),
            [JSON, b"\x00", b"\x00\x00\x00\x00", b"\x01" + framed(JSON)[1:], of_glue(JSON)],
        ),
        (
            "glue",
            of_glue(JSON),
            [
                JSON,
                b"\x03\x00",
                of_glue(JSON)[:17],
                of_glue(JSON, version=2),
                of_glue(JSON, compression=1),
                of_glue(JSON, compression=5),
                of_glue(zlib.compress(JSON)[:-1], compression=5),
                of_glue(zlib.compress(JSON) + b"x", compression=5),
                framed(JSON),
            ],
        ),
    ],
)
def test_what_has_no_frame_is_unparsable_and_harms_no_neighbour(
    framing: str, good: bytes, bad: list[bytes]
) -> None:
    payloads: list[bytes | None] = []
    for one in bad:
        payloads += [good, one]
    fates = decoded([*payloads, good], framing).fates
    assert fates == [ROW, "unparsable"] * len(bad) + [ROW]
    assert [decoded([one], framing).fates for one in bad] == [["unparsable"]] * len(bad)


@pytest.mark.parametrize(("framing", "head"), [("registry", framed(b"")), ("glue", of_glue(b""))])
def test_a_frame_around_nothing_is_no_record_without_a_value(framing: str, head: bytes) -> None:
    payloads = [head, head + JSON, None, b"", head + b"null", head + JSON + JSON]
    assert decoded(payloads, framing, nulls="ignore").fates == [
        "not-one-object",
        ROW,
        "ignored",
        "ignored",
        "not-one-object",
        "not-one-object",
    ]


def test_the_column_of_the_whole_record_has_it_without_its_frame() -> None:
    schema = schema_of(row_keys={"id": "int64"}, values={"event": "string?"})
    outcome = decode(
        schema,
        [framed(JSON)],
        decoder={"format": "json", "framing": "registry"},
        connection={"columns": {"id": "id"}, "rest": "event"},
    )
    assert outcome.fates == [{"id": 7, "event": JSON.decode()}]


def test_what_was_compressed_without_end_is_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "INFLATED_BYTES_MAX", 1_000)
    bomb = of_glue(zlib.compress(b" " * 100_000), 5)
    assert decoded([bomb, of_glue(JSON)], "glue").fates == ["too-large", ROW]


class Versions:
    def schema(self, id_: SchemaId) -> RegisteredSchema | None:
        fields = [{"name": "id", "type": "long"}, {"name": "name", "type": "string"}]
        text = json.dumps({"type": "record", "name": "R", "fields": fields})
        return RegisteredSchema(kind="avro", text=text) if id_ == VERSION else None

    def newest(self, subject: str) -> RegisteredSchema | None:
        raise AssertionError


def test_avro_behind_a_version_of_glue_is_read_by_its_schema() -> None:
    data = b"\x0e\x02a"
    unknown = b"\x03\x00" + UUID(int=1).bytes + data
    outcome = decode(
        SCHEMA,
        [of_glue(data), of_glue(zlib.compress(data), 5), unknown, framed(data)],
        decoder={"format": "avro", "registry": "glue"},
        resources=Resources(registry=Versions()),
    )
    assert outcome.fates == [ROW, ROW, "schema-unknown", "unparsable"]


@pytest.mark.parametrize(
    ("data", "indexes", "rest"),
    [
        (b"\x00abc", (0,), b"abc"),
        (b"\x02\x00abc", (0,), b"abc"),
        (b"\x02\x04abc", (2,), b"abc"),
        (b"\x04\x02\x80\x01abc", (1, 64), b"abc"),
    ],
)
def test_indexes_say_which_message_it_is(
    data: bytes, indexes: tuple[int, ...], rest: bytes
) -> None:
    assert frames.message_indexes(data) == (indexes, rest)


@pytest.mark.parametrize(
    "data", [b"", b"\x02", b"\x80", b"\x01", b"\xff" * 9, b"\x7e" + b"\x00" * 20, b"\x02\x80\x80"]
)
def test_indexes_that_are_none_are_unparsable(data: bytes) -> None:
    with pytest.raises(frames.BadRecordError, match="no indexes"):
        frames.message_indexes(data)


@pytest.mark.parametrize(
    ("decoder", "said"),
    [
        ({"format": "text", "framing": "registry"}, "leave it out"),
        ({"format": "json", "framing": "container"}, "use one of registry, glue"),
        ({"format": "json", "registry": "https://h"}, "`framing` says what stands in front"),
        ({"format": "msgpack", "registry": "https://h"}, "without registered schemas"),
        ({"format": "avro", "registry": "https://h", "framing": "datum"}, 'framing = "registry"'),
        ({"format": "avro", "registry": "glue", "framing": "registry"}, 'framing = "glue"'),
        ({"format": "avro", "registry": "ftp://h"}, "https://HOST"),
        ({"format": "avro", "registry": "https://u:p@h"}, "https://HOST"),
        ({"format": "avro", "registry": {"url": "https://h", "usr": "x"}}, "did you mean 'user'"),
        ({"format": "avro", "registry": {"user": "x"}}, "url"),
        ({"format": "avro", "registry": {"url": "https://h", "password": "x"}}, "password"),
        ({"format": "avro", "registry": {"url": "https://h", "password": "secret:p"}}, "`user`"),
        (
            {
                "format": "avro",
                "registry": {"url": "http://h", "user": "u", "password": "secret:p"},
            },
            "in the open",
        ),
        ({"format": "avro", "registry": {"url": "http://h", "ca_file": "x"}}, "no certificates"),
        ({"format": "avro", "registry": "glue:nowhere"}, "glue:eu-west-1"),
        ({"format": "avro", "registry": {"url": "glue", "user": "u"}}, "credentials of AWS"),
        ({"format": "avro", "registry": ""}, "url"),
    ],
)
def test_what_makes_no_sense_is_refused_with_what_is_allowed(
    decoder: dict[str, Any], said: str
) -> None:
    with pytest.raises(InvalidError, match=f"{said}") as caught:
        decoder_settings_of(decoder, at="feed.f.decoder")
    assert "feed.f.decoder" in str(caught.value)


@pytest.mark.parametrize(
    ("registry", "framing"),
    [
        ("https://h:8081/apis/ccompat/v7", "registry"),
        ("glue", "glue"),
        ("glue:us-gov-west-1", "glue"),
        ({"url": "http://127.0.0.1:8081", "user": "u", "password": "secret:p"}, "registry"),
    ],
)
def test_a_registry_says_what_stands_in_front(registry: object, framing: str) -> None:
    found = decoder_settings_of({"format": "avro", "registry": registry}, at="d")
    assert found.framing == framing


def test_a_registry_is_needed_where_ids_stand_in_front() -> None:
    for framing in ("registry", "glue"):
        with pytest.raises(InvalidError, match="name it"):
            decode(SCHEMA, [], decoder={"format": "avro", "framing": framing})
    known = Resources(registry=MemorySchemaRegistry())
    assert decode(SCHEMA, [], decoder={"format": "avro"}, resources=known).fates == []
