"""Avro payloads, each of which is exactly one record, opened by fastavro.

Schemas come from a registry, from the definition, or with the record.
"""

from __future__ import annotations

import io
import json
import struct
import uuid
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

import fastavro

from lakebed.config.decoders import DecoderSettings
from lakebed.decoding.python_values import BadRecordError
from lakebed.decoding.registered.avro_schemas import parsed_schema
from lakebed.decoding.registered.frames import frame_of, inflated
from lakebed.decoding.wanted import Value
from lakebed.errors import InvalidError, did_you_mean
from lakebed.model.feeds.verdicts import Verdict
from lakebed.ports.schema_registry import RegisteredSchema, SchemaId, SchemaRegistry

SCHEMAS_MAX: Final = 10_000
"""Most schemas that one decoder keeps."""
CONTAINER_TEXTS_BYTES_MAX: Final = 16 << 20
"""Most bytes of container schemas that it keeps."""
_MAGIC: Final = b"Obj\x01"
_HEADER: Final = {
    "type": "record",
    "name": "header",
    "fields": [
        {"name": "magic", "type": {"type": "fixed", "name": "magic", "size": 4}},
        {"name": "meta", "type": {"type": "map", "values": "bytes"}},
        {"name": "sync", "type": {"type": "fixed", "name": "sync", "size": 16}},
    ],
}
_BROKEN_DATA: Final = (
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    OSError,
    RecursionError,
    TypeError,
    ValueError,
    struct.error,
)


class OpenAvro:
    """Opens payloads of one framing.

    registry: of schemas, for the framing `registry`.
    """

    def __init__(self, settings: DecoderSettings, registry: SchemaRegistry | None) -> None:
        self._framing = settings.framing or "registry"
        self._bytes_max = settings.record_bytes_max
        self._registry = registry
        self._known: dict[SchemaId, Any] = {}
        self._parsed: dict[bytes, Any] = {}
        self._parsed_bytes = 0
        self._wanted = _parsed(settings.avro_schema) if settings.avro_schema else None

    def __call__(self, payload: bytes) -> Mapping[str, Any]:
        """Return a payload's fields.

        Raises:
            BadRecordError: it is no row.
            UnavailableError, DeniedError: the registry does not answer.
        """
        if self._framing == "container":
            return self._container(payload)
        if self._framing == "datum":
            return self._datum(io.BytesIO(payload), self._wanted)
        id_, data = frame_of(payload, "glue" if self._framing == "glue" else "registry")
        return self._datum(io.BytesIO(data), self._schema(id_))

    def _schema(self, id_: SchemaId) -> Any:  # noqa: ANN401 - what fastavro parses
        if id_ not in self._known:
            assert self._registry is not None, "checked by the definition"
            found = self._registry.schema(id_)
            if found is None:  # not kept: it may be registered later
                raise BadRecordError(Verdict.SCHEMA_UNKNOWN, f"schema {id_}")
            if len(self._known) >= SCHEMAS_MAX:
                self._known.clear()
            self._known[id_] = parsed_schema(found)
        return self._known[id_]

    def _datum(
        self,
        file: io.BytesIO,
        schema: Any,  # noqa: ANN401 - what fastavro parses
    ) -> Mapping[str, Any]:
        if schema is None:
            raise BadRecordError(Verdict.SCHEMA_UNKNOWN, "its schema cannot be read by")
        try:
            if self._wanted is not None and schema is not self._wanted:
                # what ours leaves out fastavro skips without a look at the end of the bytes: of a
                # list that says it has billions of items, it would skip each of them
                fastavro.schemaless_reader(file, schema, None)
                file.seek(0)
            found = fastavro.schemaless_reader(file, schema, self._wanted)
        except UnicodeDecodeError:
            raise BadRecordError(Verdict.NOT_UTF8, "a text") from None
        except _BROKEN_DATA:
            raise BadRecordError(Verdict.UNPARSABLE, "not of its schema, or cut off") from None
        except fastavro.read.SchemaResolutionError:
            raise BadRecordError(Verdict.TYPE_MISMATCH, "its schema does not fit ours") from None
        if file.read(1):
            raise BadRecordError(Verdict.NOT_ONE_OBJECT, "more after the record")
        if not isinstance(found, Mapping):
            raise BadRecordError(Verdict.NOT_ONE_OBJECT, "not a record")
        return {name: _plain(value) for name, value in found.items()}

    def _container(self, payload: bytes) -> Mapping[str, Any]:
        file = io.BytesIO(payload)
        try:
            header: Any = fastavro.schemaless_reader(file, _HEADER, None)
            if header["magic"] != _MAGIC:
                raise ValueError
            codec = header["meta"].get("avro.codec", b"null")
            text: bytes = header["meta"]["avro.schema"]
            count, size = (fastavro.schemaless_reader(file, "long", None) for _ in range(2))
            data, sync = file.read(size), file.read(16)
            if size < 0 or len(data) != size or sync != header["sync"]:
                raise ValueError
        except _BROKEN_DATA:
            detail = "not a container of Avro, or cut off"
            raise BadRecordError(Verdict.UNPARSABLE, detail) from None
        if count != 1 or file.read(1):
            raise BadRecordError(Verdict.NOT_ONE_OBJECT, "a container of several records, or none")
        if codec == b"deflate":
            data = inflated(data, -zlib.MAX_WBITS)
        elif codec != b"null":
            detail = "a container's codec is neither null nor deflate"
            raise BadRecordError(Verdict.UNPARSABLE, detail)
        return self._datum(io.BytesIO(data), self._schema_inside(text))

    def _schema_inside(self, text: bytes) -> Any:  # noqa: ANN401 - what fastavro parses
        if text not in self._parsed:
            self._parsed_bytes += len(text)
            if len(self._parsed) >= SCHEMAS_MAX or self._parsed_bytes > CONTAINER_TEXTS_BYTES_MAX:
                self._parsed.clear()
                self._parsed_bytes = len(text)
            self._parsed[text] = _parsed(text.decode("utf-8", "replace"))
        return self._parsed[text]


def check_avro(
    settings: DecoderSettings, values: Sequence[Value], registry: SchemaRegistry | None
) -> None:
    """Refuse a definition that can never read. Raises: InvalidError."""
    at = "decoder.avro_schema"
    if settings.framing not in {"container", "datum"} and registry is None:
        hint = 'name it: `registry = "https://..."`, or set `framing`'
        raise InvalidError("a registry of schemas is needed", at="decoder.framing", hint=hint)
    if settings.framing == "datum" and not settings.avro_schema:
        hint = "write the schema of records as JSON text"
        raise InvalidError("a datum is read by its schema", at=at, hint=hint)
    if settings.avro_schema:
        check_avro_schema(RegisteredSchema(kind="avro", text=settings.avro_schema), values, at=at)


def check_avro_schema(schema: RegisteredSchema, values: Sequence[Value], *, at: str) -> None:
    """Refuse a schema that values cannot be read by. at: path of the setting, for messages.

    Raises:
        InvalidError: it is none of Avro, is not one to read by, or has not all of the fields.
    """
    if schema.kind != "avro":
        hint = 'choose another `format`: records of JSON need `framing = "registry"` only'
        raise InvalidError("not a schema of Avro", at=at, kind=schema.kind[:80], hint=hint)
    if parsed_schema(schema) is None:
        hint = "give a record's schema: without types that hold themselves, and lists of nothing"
        raise InvalidError("not a schema of Avro that records are read by", at=at, hint=hint)
    form = json.loads(schema.text)
    if not isinstance(form, dict) or "fields" not in form:
        return  # a name, or one of several
    names = [field["name"] for field in form["fields"]]
    for value in values:
        if value.path[0] not in names:
            hint = did_you_mean(value.path[0], names, what="field")
            raise InvalidError("the schema has no such field", at=at, path=value.path[0], hint=hint)


def _parsed(text: str) -> Any:  # noqa: ANN401 - what fastavro parses
    return parsed_schema(RegisteredSchema(kind="avro", text=text))


def _plain(value: Any) -> Any:  # noqa: ANN401 - of Avro
    match value:
        case uuid.UUID():
            return str(value)
        case dict():
            return {name: _plain(inner) for name, inner in value.items()}
        case list():
            return [_plain(inner) for inner in value]
        case _:
            return value
