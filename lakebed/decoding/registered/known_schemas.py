"""Schemas of a registry that are kept: each is asked for once."""

from __future__ import annotations

from collections import deque
from typing import Final

from lakebed.ports.clock import Clock
from lakebed.ports.schema_registry import RegisteredSchema, SchemaId, SchemaRegistry

RETRY_SECONDS: Final = 0.25
"""Seconds until an id that the registry does not know is asked for once more: the server that was
asked may be a little behind the one where the schema was registered."""
UNKNOWN_SECONDS: Final = 10.0
"""Seconds that an id is not asked for which it did not know then either: the id may stand in front
of each record of a round."""
RETRIES_MAX: Final = 20
"""Most retries in that time: more unregistered ids are a producer's doing, not worth a wait."""
BYTES_MAX: Final = 64 << 20
"""Most bytes of schema texts that are kept."""
UNKNOWN_MAX: Final = 10_000


class KnownSchemas:
    """A registry that is asked once for each schema: one that was registered never changes.

    registry: that is asked; another connection to the same one may take its part.
    """

    def __init__(self, registry: SchemaRegistry, clock: Clock) -> None:
        self.registry = registry
        self._clock = clock
        self._known: dict[SchemaId, RegisteredSchema] = {}
        self._bytes = 0
        self._unknown: dict[SchemaId, float] = {}
        self._retries: deque[float] = deque(maxlen=RETRIES_MAX)

    def schema(self, id_: SchemaId) -> RegisteredSchema | None:
        """Return a schema. None: the registry knew no such id, twice and not long ago."""
        if id_ in self._known:
            return self._known[id_]
        now = self._clock.monotonic()
        if id_ in self._unknown and now - self._unknown[id_] < UNKNOWN_SECONDS:
            return None
        found = self.registry.schema(id_)
        if found is None and self._may_retry(now):
            self._clock.sleep(RETRY_SECONDS)
            found = self.registry.schema(id_)
        if found is None:
            self._forget_unknown()
            self._unknown[id_] = self._clock.monotonic()
            return None
        self._keep(id_, found)
        return found

    def newest(self, subject: str) -> RegisteredSchema | None:
        """Return the newest schema of a subject: another one after each registration, so the
        registry is asked each time."""
        return self.registry.newest(subject)

    def _may_retry(self, now: float) -> bool:
        is_full = len(self._retries) == RETRIES_MAX
        if is_full and now - self._retries[0] < UNKNOWN_SECONDS:
            return False
        self._retries.append(now)
        return True

    def _keep(self, id_: SchemaId, schema: RegisteredSchema) -> None:
        size = len(schema.text) + sum(map(len, schema.references))
        if self._bytes + size > BYTES_MAX:
            self._known.clear()
            self._bytes = 0
        self._known[id_] = schema
        self._bytes += size
        self._unknown.pop(id_, None)

    def _forget_unknown(self) -> None:
        if len(self._unknown) >= UNKNOWN_MAX:
            self._unknown.clear()
