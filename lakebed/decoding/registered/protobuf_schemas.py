"""Schemas of Protobuf that were registered: messages of a file that a registry gives serialized."""

from __future__ import annotations

import base64
import binascii
from importlib import import_module
from typing import Final

from google.protobuf.descriptor import Descriptor, FileDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError

from lakebed.ports.schema_registry import RegisteredSchema

_OWN_NAME: Final = "lakebed/registered.proto"
_WELL_KNOWN: Final = {
    f"google/protobuf/{name}.proto": f"google.protobuf.{name}_pb2"
    for name in (
        "any",
        "api",
        "descriptor",
        "duration",
        "empty",
        "field_mask",
        "source_context",
        "struct",
        "timestamp",
        "type",
        "wrappers",
    )
}
"""Files that come with Protobuf, and that no registry has."""


def registered_file(schema: RegisteredSchema) -> FileDescriptor | None:
    """Return a schema's file. None: it is none of Protobuf, or takes types of what is not there."""
    if schema.kind != "protobuf" or len(schema.names) != len(schema.references):
        return None
    pool = DescriptorPool()
    try:
        named = zip(schema.references, schema.names, strict=True)
        files = [*(_file(text, name) for text, name in named), _file(schema.text, _OWN_NAME)]
        given = {file.name for file in files}
        for file in files:
            for needed in file.dependency:
                if needed not in given:
                    _add_well_known(pool, needed)
        for file in files:
            pool.Add(file)
        return pool.FindFileByName(_OWN_NAME)
    except (binascii.Error, DecodeError, KeyError, TypeError, ValueError):
        return None


def message_at(file: FileDescriptor, indexes: tuple[int, ...]) -> Descriptor | None:
    """Return the message of a file at some indexes, from the outermost on. None: there is none."""
    found, inner = None, list(file.message_types_by_name.values())
    for index in indexes:
        if not 0 <= index < len(inner):
            return None
        found = inner[index]
        inner = list(found.nested_types)
    return found


def _file(text: str, name: str) -> FileDescriptorProto:
    file = FileDescriptorProto()
    file.ParseFromString(base64.b64decode(text, validate=True))
    file.name = name
    return file


def _add_well_known(pool: DescriptorPool, name: str) -> None:
    file: FileDescriptor = import_module(_WELL_KNOWN[name]).DESCRIPTOR
    for needed in file.dependencies:
        _add_well_known(pool, needed.name)
    pool.AddSerializedFile(file.serialized_pb)
