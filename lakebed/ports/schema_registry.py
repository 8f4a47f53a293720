"""The door to a registry of schemas: what the id in front of a record means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

SchemaId = int | UUID
"""Confluent's registries count; Glue's give each version of a schema a UUID."""

SCHEMA_BYTES_MAX = 4 << 20
"""Most bytes of a schema, with all that it refers to."""
REFERENCES_MAX = 100
"""Most references that a schema may have, also by others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredSchema:
    """A schema as it was registered.

    kind: of its text: `avro`, `json` or `protobuf`.
    text: of Protobuf, from a registry that gives that: its file as a descriptor, in base64.
    references: texts of the schemas that it takes types of, each behind those that it needs.
    names: by which the references are imported, one for each; none where the registry says none.
    """

    kind: str
    text: str
    references: tuple[str, ...] = ()
    names: tuple[str, ...] = ()


class SchemaRegistry(Protocol):
    """Schemas by id. One that was registered never changes, so answers may be kept for ever.

    Every implementation passes `tests/contracts/test_schema_registry.py`.
    """

    def schema(self, id_: SchemaId) -> RegisteredSchema | None:
        """Return a schema. None: the registry knows no such id, or not all that it refers to.

        Raises:
            DeniedError: our credentials are refused.
            InvalidError: what answers there is no registry that may be asked.
            UnavailableError: ask again.
        """
        ...

    def newest(self, subject: str) -> RegisteredSchema | None:
        """Return the newest schema of a subject. None: the registry knows no such subject.

        Raises:
            DeniedError, InvalidError, UnavailableError: as `schema`.
        """
        ...
