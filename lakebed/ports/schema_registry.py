"""The door to a registry of schemas: what the id in front of a record means."""

from __future__ import annotations

from typing import Protocol


class SchemaRegistry(Protocol):
    """Schemas by id. One that was registered never changes, so answers are kept for ever.

    Every implementation passes `tests/contracts/test_schema_registry.py`.
    """

    def schema(self, id_: int) -> str | None:
        """Return the text of a schema of Avro. None: the registry knows no such id.

        Raises:
            DeniedError: our credentials are refused.
            UnavailableError: ask again.
        """
        ...
