"""Protobuf payloads, each of which is one message, opened by protobuf's own runtime.

Two messages one after another are one message to Protobuf, whose later fields win: it cannot be
seen that a payload holds two.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import Any, Final

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.descriptor import Descriptor, FieldDescriptor, FileDescriptor
from google.protobuf.message import DecodeError, Message
from google.protobuf.unknown_fields import UnknownFieldSet

from lakebed.decoding.python_values import BadRecordError
from lakebed.decoding.registered.frames import frame_of, message_indexes
from lakebed.decoding.registered.protobuf_schemas import message_at, registered_file
from lakebed.decoding.wanted import TEXT, Raw, Value
from lakebed.errors import InvalidError, did_you_mean
from lakebed.model.feeds.verdicts import Verdict
from lakebed.model.types import ListOf, MapOf, StructOf
from lakebed.ports.schema_registry import RegisteredSchema, SchemaId, SchemaRegistry

SCHEMAS_MAX: Final = 10_000
"""Most schemas that one decoder keeps."""
_EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_TIMESTAMP: Final = "google.protobuf.Timestamp"


class OpenProtobuf:
    """Opens payloads of one message type; of each the wanted values become Python's.

    descriptors: bytes of a descriptor set. message: full name of the type. has_indexes: whether
    indexes of the type in its file stand in front, as Confluent's serializers write them.
    """

    def __init__(
        self,
        descriptors: bytes,
        message: str,
        values: Sequence[Value],
        *,
        has_indexes: bool = False,
    ) -> None:
        """Raises: InvalidError: they do not hold the message, or the message not the values."""
        descriptor = _descriptor(descriptors, message)
        self._indexes = _indexes_of(descriptor) if has_indexes else None
        for value in values:
            _check_path(descriptor, value)
        self._message = _MessageType(descriptor, values)

    def __call__(self, payload: bytes) -> Mapping[str, Any]:
        """Return a payload's fields. Raises: BadRecordError."""
        if self._indexes is not None:
            indexes, payload = message_indexes(payload)
            if indexes != self._indexes:
                raise BadRecordError(Verdict.TYPE_MISMATCH, "another message of its file")
        return self._message.opened(payload)


class OpenRegisteredProtobuf:
    """Opens payloads by the schemas that wrote them, each of which names its own.

    message: full name of the type that payloads are to be of; "": of any.
    """

    def __init__(self, registry: SchemaRegistry, message: str, values: Sequence[Value]) -> None:
        self._registry, self._message, self._values = registry, message, values
        self._files: dict[SchemaId, FileDescriptor | None] = {}
        self._types: dict[tuple[SchemaId, tuple[int, ...]], _MessageType] = {}

    def __call__(self, payload: bytes) -> Mapping[str, Any]:
        """Return a payload's fields.

        Raises:
            BadRecordError: it is no row.
            InvalidError, UnavailableError, DeniedError: the registry gives no answer of use.
        """
        id_, rest = frame_of(payload, "registry")
        indexes, data = message_indexes(rest)
        type_ = self._types.get((id_, indexes))
        if type_ is None:
            descriptor = self._type_of(id_, indexes)
            if len(self._types) >= SCHEMAS_MAX:
                self._types.clear()
            type_ = _MessageType(descriptor, self._values, has_unwanted=True)
            self._types[id_, indexes] = type_
        return type_.opened(data)

    def _type_of(self, id_: SchemaId, indexes: tuple[int, ...]) -> Descriptor:
        if id_ not in self._files:
            schema = self._registry.schema(id_)
            if schema is None:  # not kept: it may be registered later
                raise BadRecordError(Verdict.SCHEMA_UNKNOWN, f"schema {id_}")
            if len(self._files) >= SCHEMAS_MAX:
                self._files.clear()
            self._files[id_] = registered_file(schema)
        file = self._files[id_]
        if file is None:
            raise BadRecordError(Verdict.SCHEMA_UNKNOWN, "its schema cannot be read by")
        found = message_at(file, indexes)
        if found is None:
            raise BadRecordError(Verdict.SCHEMA_UNKNOWN, "its schema has no such message")
        if self._message and found.full_name != self._message:
            raise BadRecordError(Verdict.TYPE_MISMATCH, "another message")
        return found


class _MessageType:
    """A type of messages, and where wanted values stand in it. Those that it does not have are
    missing.

    has_unwanted: whether what is opened names fields that no value is, too.
    """

    def __init__(
        self, descriptor: Descriptor, values: Sequence[Value], *, has_unwanted: bool = False
    ) -> None:
        self._new = message_factory.GetMessageClass(descriptor)
        self._values = [value for value in values if _has_path(descriptor, value)]
        self._wanted = {value.path[0] for value in values}
        self._has_unwanted = has_unwanted

    def opened(self, payload: bytes) -> dict[str, Any]:
        """Return the wanted fields of a payload. Raises: BadRecordError."""
        message = self._new()
        try:
            message.ParseFromString(payload)
        except (DecodeError, RuntimeWarning):
            raise BadRecordError(Verdict.UNPARSABLE, "not of its message, or cut off") from None
        if not message.IsInitialized():
            missing = message.FindInitializationErrors()[0]
            raise BadRecordError(Verdict.MISSING_FIELD, missing)
        opened: dict[str, Any] = {}
        for value in self._values:
            _take(message, value, opened)
        for unknown in UnknownFieldSet(message):
            opened.setdefault(f"#{unknown.field_number}", None)
        if self._has_unwanted:
            names = (field.name for field, _ in message.ListFields())
            opened |= {name: None for name in names if name not in self._wanted}
        return opened


def check_registered_protobuf(
    schema: RegisteredSchema, message: str, values: Sequence[Value], *, at: str
) -> None:
    """Refuse a schema that values cannot be read by.

    message: as of `OpenRegisteredProtobuf`; "": the first one of its file.
    at: path of the setting that names the schema, for messages.

    Raises:
        InvalidError: it is none of Protobuf, cannot be read, or has not all of the fields.
    """
    if schema.kind != "protobuf":
        hint = "choose another `format`, or another subject"
        raise InvalidError("not a schema of Protobuf", at=at, kind=schema.kind[:80], hint=hint)
    file = registered_file(schema)
    if file is None:
        hint = "look at what it imports: the registry, or Protobuf itself, must have all of it"
        raise InvalidError("a schema of Protobuf that cannot be read", at=at, hint=hint)
    types = {type_.full_name: type_ for type_ in file.message_types_by_name.values()}
    if not types or (message and message not in types):
        hint = did_you_mean(message, types, what="message")
        raise InvalidError(
            "the schema has no such message", at="decoder.message", got=message, hint=hint
        )
    for value in values:
        _check_path(types[message] if message else next(iter(types.values())), value)


def _take(message: Message, value: Value, into: dict[str, Any]) -> None:
    """Put a value where its path says, if the message has it."""
    for name in value.path[:-1]:
        if not message.HasField(name):
            return
        message = getattr(message, name)
        into = into.setdefault(name, {})
    found, is_there = _field(message, message.DESCRIPTOR.fields_by_name[value.path[-1]], value.raw)
    if is_there:
        into[value.path[-1]] = found


def _field(message: Message, field: FieldDescriptor, raw: Raw) -> tuple[object, bool]:
    """Return a field as Python's, and whether it is there. One without presence always is."""
    value = getattr(message, field.name)
    if _is_map(field):
        inner = raw.value if isinstance(raw, MapOf) else TEXT
        of_value = field.message_type.fields_by_name["value"]
        return {key: _plain(value[key], of_value, inner) for key in value}, True
    if field.is_repeated:
        element = raw.element if isinstance(raw, ListOf) else TEXT
        return [_plain(item, field, element) for item in value], True
    if field.has_presence and not message.HasField(field.name):
        return None, False
    return _plain(value, field, raw), True


def _plain(value: Any, field: FieldDescriptor, raw: Raw) -> object:  # noqa: ANN401 - of a message
    if field.type == FieldDescriptor.TYPE_ENUM:
        known = field.enum_type.values_by_number.get(value)
        return known.name if raw == TEXT and known is not None else value
    if field.message_type is None:
        return value
    if field.message_type.full_name == _TIMESTAMP:
        return _time(value)
    types = {m.name: m.type for m in raw.members} if isinstance(raw, StructOf) else {}
    fields = value.DESCRIPTOR.fields_by_name
    parts = {n: _field(value, fields[n], type_) for n, type_ in types.items() if n in fields}
    return {name: part for name, (part, is_there) in parts.items() if is_there}


def _time(value: Any) -> datetime.datetime:  # noqa: ANN401 - a message of protobuf's own
    try:
        return _EPOCH + datetime.timedelta(seconds=value.seconds, microseconds=value.nanos // 1_000)
    except OverflowError:
        raise BadRecordError(Verdict.TIME_OUT_OF_BOUNDS, "a timestamp") from None


def _is_map(field: FieldDescriptor) -> bool:
    type_ = field.message_type
    return bool(type_ is not None and type_.GetOptions().map_entry)


def _descriptor(descriptors: bytes, message: str) -> Descriptor:
    at = "decoder.descriptors"
    files = descriptor_pb2.FileDescriptorSet()
    pool = descriptor_pool.DescriptorPool()
    try:
        files.ParseFromString(descriptors)
        for file in files.file:
            pool.Add(file)
    except (DecodeError, TypeError, ValueError):
        hint = "write it by `protoc --include_imports --descriptor_set_out=FILE`"
        raise InvalidError("not a descriptor set of Protobuf", at=at, hint=hint) from None
    try:
        return pool.FindMessageTypeByName(message)
    except (KeyError, TypeError):
        names = [
            f"{file.package}.{type_.name}" if file.package else type_.name
            for file in files.file
            for type_ in file.message_type
        ]
        hint = did_you_mean(message, names, what="message")
        raise InvalidError(
            "the descriptor set has no such message", at="decoder.message", got=message, hint=hint
        ) from None


def _indexes_of(descriptor: Descriptor) -> tuple[int, ...]:
    """Return which message of its file it is, from the outermost on."""
    outer = descriptor.containing_type
    if outer is None:
        return (list(descriptor.file.message_types_by_name).index(descriptor.name),)
    return (*_indexes_of(outer), list(outer.nested_types_by_name).index(descriptor.name))


def _has_path(descriptor: Descriptor, value: Value) -> bool:
    """Return whether a message has a value's field."""
    for name in value.path[:-1]:
        field = descriptor.fields_by_name.get(name)
        if field is None or field.message_type is None or field.is_repeated:
            return False
        descriptor = field.message_type
    return value.path[-1] in descriptor.fields_by_name


def _check_path(descriptor: Descriptor, value: Value) -> None:
    at = ".".join(value.path)
    for depth, name in enumerate(value.path):
        fields = descriptor.fields_by_name
        if name not in fields:
            hint = did_you_mean(name, fields, what="field")
            raise InvalidError(
                "the message has no such field", type=descriptor.full_name, path=at, hint=hint
            )
        field = fields[name]
        if depth < len(value.path) - 1:
            if field.message_type is None or field.is_repeated:
                hint = f"{name!r} is no single message: end the path there"
                raise InvalidError("a path leads into a value", path=at, hint=hint)
            descriptor = field.message_type
