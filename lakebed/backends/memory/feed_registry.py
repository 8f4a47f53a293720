"""Definitions of feeds in memory."""

from __future__ import annotations

import threading
from collections.abc import Collection, Sequence

from lakebed.feed_errors import DefinitionChangedError
from lakebed.model.feeds.definitions import (
    DefinitionChange,
    DefinitionEntry,
    DefinitionKind,
    Drop,
    FeedFailure,
    NamedDefinition,
    NoteFailure,
    Put,
    StoredDefinition,
    Want,
    WantedState,
    after,
    bounded,
    check_changes,
    check_number,
    has_happened,
)
from lakebed.model.feeds.endings import Ending, Endings
from lakebed.model.feeds.flushes import Flushes
from lakebed.ports.feed_registry import ENTRIES_MAX


class MemoryFeedRegistry:
    """Definitions by kind and name."""

    def __init__(self) -> None:
        self._stored: dict[tuple[DefinitionKind, str], StoredDefinition] = {}
        self._number = 0
        self._flushes = Flushes()
        self._endings = Endings()
        self._lock = threading.Lock()

    def number(self) -> int:
        """Return how often definitions were changed."""
        return self._number

    def lift(self, number: int) -> None:
        """Let the registry's number be at least this."""
        check_number(number)
        with self._lock:
            self._number = max(self._number, number)

    def change(
        self, changes: Sequence[DefinitionChange], *, expected_number: int | None = None
    ) -> list[int]:
        """Change several definitions, all or none."""
        check_changes(changes)
        with self._lock:
            if expected_number not in {None, self._number}:
                raise DefinitionChangedError("definitions have changed", number=self._number)
            number = self._number + bool(changes)
            new = {c.key: after(self._stored.get(c.key), c, number) for c in changes}
            self._stored.update(new)
            self._number = number
            return [new[change.key].version for change in changes]

    def put(self, definition: NamedDefinition, expected_version: int) -> int:
        """Store a definition."""
        (version,) = self.change([Put(definition, expected_version)])
        return version

    def drop(self, kind: DefinitionKind, name: str, expected_version: int) -> None:
        """Forget a definition."""
        change = Drop(kind, name, expected_version)
        if not has_happened(self._stored.get(change.key), change):
            self.change([change])

    def get(self, kind: DefinitionKind, name: str) -> DefinitionEntry | None:
        """Return a definition."""
        stored = self._stored.get((kind, name))
        return None if stored is None else stored.entry(kind, name)

    def list(
        self, kind: DefinitionKind, *, after: str = "", entries_max: int = ENTRIES_MAX
    ) -> list[DefinitionEntry]:
        """Return definitions whose names come after one."""
        with self._lock:
            rows = sorted(self._stored.items())
        found = [s.entry(k, name) for (k, name), s in rows if k == kind and name > after]
        return [entry for entry in found if entry is not None][:entries_max]

    def want(
        self, kind: DefinitionKind, name: str, wanted: WantedState, expected_revision: int
    ) -> int:
        """Say what is wanted of a feed or a connection."""
        return self._change(Want(kind, name, wanted, expected_revision)).revision

    def note_failure(self, kind: DefinitionKind, name: str, failure: FeedFailure) -> None:
        """Say that a feed or a connection failed."""
        change = NoteFailure(kind, name, bounded(failure))
        if not has_happened(self._stored.get(change.key), change):
            self._change(change)

    def flushes(self) -> Flushes:
        """Return which feeds are to commit what they hold."""
        return self._flushes

    def want_flush(self, feed: str, expected_number: int) -> int:
        """Say that a feed is to commit what it holds."""
        with self._lock:
            self._flushes = self._flushes.after(feed, expected_number)
            return self._flushes.number

    def endings(self) -> Endings:
        """Return what tables are to forget."""
        return self._endings

    def change_endings(
        self, announced: Sequence[Ending], ended: Collection[str], expected_number: int
    ) -> int:
        """Add some of them, and remove others."""
        with self._lock:
            self._endings = self._endings.after(announced, ended, expected_number)
            return self._endings.number

    def _change(self, change: Want | NoteFailure) -> StoredDefinition:
        with self._lock:
            new = self._stored[change.key] = after(self._stored.get(change.key), change)
            return new
