"""A registry of schemas in memory."""

from __future__ import annotations


class MemorySchemaRegistry:
    """Schemas by the ids that it gave them."""

    def __init__(self) -> None:
        self._schemas: list[str] = []

    def register(self, text: str) -> int:
        """Return the id of a schema: the same for the same text."""
        if text not in self._schemas:
            self._schemas.append(text)
        return self._schemas.index(text) + 1

    def schema(self, id_: int) -> str | None:
        """Return the text of a schema, if the id was given."""
        return self._schemas[id_ - 1] if 0 < id_ <= len(self._schemas) else None
