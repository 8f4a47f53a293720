"""Avro payloads, each of which is exactly one record, opened by fastavro.

Schemas come from a registry, from the definition, or with the record; a schema that could make a
small payload endless is not read by.
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
from fastavro.schema import SchemaParseException, UnknownType

from lakebed.config.decoders import DecoderSettings
from lakebed.decoding.python_values import BadRecordError
from lakebed.decoding.wanted import Value
from lakebed.errors import InvalidError, did_you_mean
from lakebed.model.feeds.verdicts import Verdict
from lakebed.ports.schema_registry import SchemaRegistry

SCHEMAS_MAX: Final = 10_000
"""That one decoder keeps."""
CONTAINER_BYTES_MAX: Final = 64 << 20
"""Of a container's block, decompressed."""
_MAGIC, _HEAD = b"Obj\x01", struct.Struct(">bI")
_HEADER: Final = {
    "type": "record",
    "name": "header",
    "fields": [
        {"name": "magic", "type": {"type": "fixed", "name": "magic", "size": 4}},
        {"name": "meta", "type": {"type": "map", "values": "bytes"}},
        {"name": "sync", "type": {"type": "fixed", "name": "sync", "size": 16}},
    ],
}
_PRIMITIVES: Final = ("boolean", "int", "long", "float", "double", "bytes", "string", "null")
_BROKEN_SCHEMA: Final = (
    SchemaParseException,
    UnknownType,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)
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
_NO_SCHEMA: Final = BadRecordError(Verdict.SCHEMA_UNKNOWN, "its schema cannot be read by")


class OpenAvro:
    """Opens payloads of one framing.

    registry: of schemas, for the framing `registry`.
    """

    def __init__(self, settings: DecoderSettings, registry: SchemaRegistry | None) -> None:
        self._framing = settings.framing
        self._bytes_max = settings.record_bytes_max
        self._registry = registry
        self._known: dict[int, Any] = {}
        self._parsed: dict[bytes, Any] = {}
        self._wanted = _parse(settings.avro_schema) if settings.avro_schema else None

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
        if len(payload) < _HEAD.size or payload[0] != 0:
            raise BadRecordError(Verdict.UNPARSABLE, "no zero byte and id of a schema in front")
        _, id_ = _HEAD.unpack_from(payload)
        return self._datum(io.BytesIO(payload[_HEAD.size :]), self._schema(id_))

    def _schema(self, id_: int) -> Any:  # noqa: ANN401 - what fastavro parses
        if id_ not in self._known:
            assert self._registry is not None, "checked by the definition"
            text = self._registry.schema(id_) or self._registry.schema(id_)  # one more try
            if text is None:  # not kept: it may be registered later
                raise BadRecordError(Verdict.SCHEMA_UNKNOWN, f"schema {id_}")
            if len(self._known) >= SCHEMAS_MAX:
                self._known.clear()
            self._known[id_] = _parse(text)
        return self._known[id_]

    def _datum(
        self,
        file: io.BytesIO,
        schema: Any,  # noqa: ANN401 - what fastavro parses
    ) -> Mapping[str, Any]:
        if schema is None:
            raise _NO_SCHEMA
        try:
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
        except (*_BROKEN_DATA, *_BROKEN_SCHEMA):
            detail = "not a container of Avro, or cut off"
            raise BadRecordError(Verdict.UNPARSABLE, detail) from None
        if count != 1 or file.read(1):
            raise BadRecordError(Verdict.NOT_ONE_OBJECT, "a container of several records, or none")
        if text not in self._parsed:
            if len(self._parsed) >= SCHEMAS_MAX:
                self._parsed.clear()
            self._parsed[text] = _parse(text.decode("utf-8", "replace"))
        return self._datum(io.BytesIO(_inflated(data, codec)), self._parsed[text])


def _inflated(data: bytes, codec: bytes) -> bytes:
    if codec == b"null":
        return data
    if codec != b"deflate":
        raise BadRecordError(Verdict.UNPARSABLE, "a container's codec is neither null nor deflate")
    inflater = zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        found = inflater.decompress(data, CONTAINER_BYTES_MAX)
    except zlib.error:
        raise BadRecordError(Verdict.UNPARSABLE, "a container's block is damaged") from None
    if inflater.unconsumed_tail:
        raise BadRecordError(Verdict.TOO_LARGE, f"more than {CONTAINER_BYTES_MAX:,} bytes inside")
    return found


def check_avro(
    settings: DecoderSettings, values: Sequence[Value], registry: SchemaRegistry | None
) -> None:
    """Refuse a definition that can never read. Raises: InvalidError."""
    at = "decoder.avro_schema"
    if settings.framing == "registry" and registry is None:
        hint = "name the registry, or set `framing`"
        raise InvalidError("a registry of schemas is needed", at="decoder.framing", hint=hint)
    if settings.framing == "datum" and not settings.avro_schema:
        hint = "write the schema of records as JSON text"
        raise InvalidError("a datum is read by its schema", at=at, hint=hint)
    if not settings.avro_schema:
        return
    if _parse(settings.avro_schema) is None:
        hint = "give a record's schema: without types that hold themselves, and lists of nothing"
        raise InvalidError("not a schema of Avro that records are read by", at=at, hint=hint)
    form = json.loads(settings.avro_schema)
    names = [field["name"] for field in form.get("fields", [])]
    for value in values:
        if value.path[0] not in names:
            hint = did_you_mean(value.path[0], names, what="field")
            raise InvalidError("the schema has no such field", at=at, path=value.path[0], hint=hint)


def _parse(text: str) -> Any:  # noqa: ANN401 - what fastavro parses
    """Return a schema as fastavro reads by it; None: it is none, or not one to read by."""
    try:
        form = json.loads(text)
        if not _is_bounded(form, ()):
            return None
        return fastavro.parse_schema(form)
    except _BROKEN_SCHEMA:
        return None


def _is_bounded(form: Any, inside: tuple[str, ...]) -> bool:  # noqa: ANN401 - of JSON
    """Whether no type holds itself, which could be as deep as a payload is long, and each item of a
    list takes a byte: else a few bytes could say that there are billions."""
    match form:
        case str():
            return form not in inside
        case list():
            return all(_is_bounded(part, inside) for part in form)
        case {"type": "record" | "error", "name": str(name), "fields": list(fields)}:
            full = f"{form['namespace']}.{name}" if form.get("namespace") else name
            within = (*inside, name, full, name.rsplit(".", 1)[-1])
            return all(_is_bounded(field["type"], within) for field in fields)
        case {"type": "array", "items": items}:
            return _takes_bytes(items) and _is_bounded(items, inside)
        case {"type": "map", "values": values}:
            return _is_bounded(values, inside)
        case {"type": dict() | list() as inner}:
            return _is_bounded(inner, inside)
        case {"type": str(name)}:
            return name not in inside
        case _:
            return False


def _takes_bytes(form: Any) -> bool:  # noqa: ANN401 - of JSON
    match form:
        case {"type": "record" | "error", "fields": list(fields)}:
            return any(_takes_bytes(field["type"]) for field in fields)
        case {"type": "fixed", "size": size}:
            return bool(size > 0)
        case {"type": inner}:
            return _takes_bytes(inner)
        case str():  # a name of a type may stand for one of nothing
            return form in _PRIMITIVES[:-1] or form in ("array", "map", "enum")
        case _:
            return True


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
