"""Protobuf payloads, each of which is one message, opened by protobuf's own runtime.

Two messages one after another are one message to Protobuf, whose later fields win: it cannot be
seen that a payload holds two.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import Any, Final

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError, Message
from google.protobuf.unknown_fields import UnknownFieldSet

from lakebed.decoding.python_values import BadRecordError
from lakebed.decoding.registered.frames import message_indexes
from lakebed.decoding.wanted import TEXT, Raw, Value
from lakebed.errors import InvalidError, did_you_mean
from lakebed.model.feeds.verdicts import Verdict
from lakebed.model.types import ListOf, MapOf, StructOf

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
        self._values = values
        self._new = message_factory.GetMessageClass(descriptor)
        for value in values:
            _check_path(descriptor, value)

    def __call__(self, payload: bytes) -> Mapping[str, Any]:
        """Return a payload's fields. Raises: BadRecordError."""
        if self._indexes is not None:
            indexes, payload = message_indexes(payload)
            if indexes != self._indexes:
                raise BadRecordError(Verdict.TYPE_MISMATCH, "another message of its file")
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
        return opened


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
