"""A registry of feeds whose requests are lost, late or unanswered."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from lakebed.backends.faulty.registry_faults import RegistryFaults
from lakebed.model.feeds.definitions import (
    DefinitionChange,
    DefinitionEntry,
    DefinitionKind,
    FeedFailure,
    NamedDefinition,
    WantedState,
)
from lakebed.model.feeds.endings import Ending, Endings
from lakebed.model.feeds.flushes import Flushes
from lakebed.ports.feed_registry import ENTRIES_MAX, FeedRegistry


class FaultyFeedRegistry:
    """Definitions as one worker or operator meets them."""

    def __init__(self, registry: FeedRegistry, faults: RegistryFaults) -> None:
        self._registry = registry
        self._faults = faults

    def number(self) -> int:
        """Return how often definitions were changed."""
        return self._faults.read(self._registry.number)

    def lift(self, number: int) -> None:
        """Let the registry's number be at least this, perhaps."""
        self._faults.write("definitions", lambda: self._registry.lift(number))

    def change(
        self, changes: Sequence[DefinitionChange], *, expected_number: int | None = None
    ) -> list[int]:
        """Change several definitions, perhaps."""
        return self._faults.write(
            "definitions", lambda: self._registry.change(changes, expected_number=expected_number)
        )

    def put(self, definition: NamedDefinition, expected_version: int) -> int:
        """Store a definition, perhaps."""
        return self._faults.write(
            "definitions", lambda: self._registry.put(definition, expected_version)
        )

    def drop(self, kind: DefinitionKind, name: str, expected_version: int) -> None:
        """Forget a definition, perhaps."""
        self._faults.write("definitions", lambda: self._registry.drop(kind, name, expected_version))

    def get(self, kind: DefinitionKind, name: str) -> DefinitionEntry | None:
        """Return a definition."""
        return self._faults.read(lambda: self._registry.get(kind, name))

    def list(
        self, kind: DefinitionKind, *, after: str = "", entries_max: int = ENTRIES_MAX
    ) -> list[DefinitionEntry]:
        """Return definitions whose names come after one."""
        return self._faults.read(
            lambda: self._registry.list(kind, after=after, entries_max=entries_max)
        )

    def want(
        self, kind: DefinitionKind, name: str, wanted: WantedState, expected_revision: int
    ) -> int:
        """Say what is wanted, perhaps."""
        return self._faults.write(
            "wanted state", lambda: self._registry.want(kind, name, wanted, expected_revision)
        )

    def note_failure(self, kind: DefinitionKind, name: str, failure: FeedFailure) -> None:
        """Say that a feed or a connection failed, perhaps."""
        self._faults.write("failure", lambda: self._registry.note_failure(kind, name, failure))

    def flushes(self) -> Flushes:
        """Return which feeds are to commit what they hold."""
        return self._faults.read(self._registry.flushes)

    def want_flush(self, feed: str, expected_number: int) -> int:
        """Say that a feed is to commit what it holds, perhaps."""
        return self._faults.write("flush", lambda: self._registry.want_flush(feed, expected_number))

    def endings(self) -> Endings:
        """Return what tables are to forget."""
        return self._faults.read(self._registry.endings)

    def change_endings(
        self, announced: Sequence[Ending], ended: Collection[str], expected_number: int
    ) -> int:
        """Add some of them, and remove others, perhaps."""
        return self._faults.write(
            "endings", lambda: self._registry.change_endings(announced, ended, expected_number)
        )
