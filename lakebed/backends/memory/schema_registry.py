"""A registry of schemas in memory."""

from __future__ import annotations

from lakebed.ports.schema_registry import RegisteredSchema, SchemaId


class MemorySchemaRegistry:
    """Schemas by the ids that it gave them."""

    def __init__(self) -> None:
        self._schemas: list[RegisteredSchema] = []
        self._newest: dict[str, RegisteredSchema] = {}

    def register(
        self,
        text: str,
        *,
        kind: str = "avro",
        subject: str = "",
        references: tuple[str, ...] = (),
        names: tuple[str, ...] = (),
    ) -> int:
        """Return the id of a schema: the same for the same text. It is the subject's newest."""
        schema = RegisteredSchema(kind=kind, text=text, references=references, names=names)
        if schema not in self._schemas:
            self._schemas.append(schema)
        self._newest[subject] = schema
        return self._schemas.index(schema) + 1

    def schema(self, id_: SchemaId) -> RegisteredSchema | None:
        """Return a schema, if the id was given."""
        if not isinstance(id_, int) or not 0 < id_ <= len(self._schemas):
            return None
        return self._schemas[id_ - 1]

    def newest(self, subject: str) -> RegisteredSchema | None:
        """Return the newest schema of a subject."""
        return self._newest.get(subject)
