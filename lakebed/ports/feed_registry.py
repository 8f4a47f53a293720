"""The door to definitions of feeds, connections and policies, and to what is wanted of them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

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

ENTRIES_MAX = 500
"""Most entries on a page of a listing, unless the caller wants fewer."""


class FeedRegistry(Protocol):
    """Definitions by kind and name, changed by compare and set. Reading is strongly consistent.

    Every implementation passes `tests/contracts/feeds/test_feed_registry.py`.

    Any of its methods raises UnavailableError when the store is busy; one that writes raises
    UnknownOutcomeError when no answer came: read, then decide.
    """

    def number(self) -> int:
        """Return how often definitions were changed. It rises with each change of any of them, and
        with nothing else."""
        ...

    def lift(self, number: int) -> None:
        """Let the registry's number be at least this, so that versions from now on are greater.
        After the registry was restored to an earlier day: tables may know newer versions."""
        ...

    def change(
        self, changes: Sequence[DefinitionChange], *, expected_number: int | None = None
    ) -> list[int]:
        """Change several definitions, all or none. Returns the version of each; a dropped one has
        that which it had.

        expected_number: of the registry, so that nothing that was read has changed; None: any.

        Raises:
            DefinitionChangedError: one of them is not as expected, or the registry's number is
                not, perhaps since an earlier try of this call that another change followed.
            InvalidError: more than is changed at once; what is no name.
        """
        ...

    def put(self, definition: NamedDefinition, expected_version: int) -> int:
        """Store a definition. Returns its version, higher than that of any definition before.

        expected_version: of the stored one; 0: there is none.

        Raises:
            DefinitionChangedError: the stored one is not as expected.
        """
        ...

    def drop(self, kind: DefinitionKind, name: str, expected_version: int) -> None:
        """Forget a definition. Again does nothing.

        Raises:
            DefinitionChangedError: the stored one is not as expected.
        """
        ...

    def get(self, kind: DefinitionKind, name: str) -> DefinitionEntry | None:
        """Return a definition; None: there is none of that name."""
        ...

    def list(
        self, kind: DefinitionKind, *, after: str = "", entries_max: int = ENTRIES_MAX
    ) -> list[DefinitionEntry]:
        """Return definitions whose names come after one, by name; an empty list: no more."""
        ...

    def want(
        self, kind: DefinitionKind, name: str, wanted: WantedState, expected_revision: int
    ) -> int:
        """Say what is wanted of a feed or a connection; its failure is forgotten. Returns its
        revision.

        Raises:
            DefinitionChangedError: it is not as it was at that revision, or not there.
        """
        ...

    def note_failure(self, kind: DefinitionKind, name: str, failure: FeedFailure) -> None:
        """Say that a feed or a connection failed. Again with the same does nothing.

        Raises:
            DefinitionChangedError: its definition has a newer version, or it is not there.
        """
        ...

    def flushes(self) -> Flushes:
        """Return which feeds are to commit what they hold."""
        ...

    def want_flush(self, feed: str, expected_number: int) -> int:
        """Say that a feed is to commit what it holds. Returns the number of this wish. Whether
        there is such a feed is not looked at.

        expected_number: of the last wish, of any feed.

        Raises:
            DefinitionChangedError: it is another.
        """
        ...

    def endings(self) -> Endings:
        """Return what tables are to forget of definitions that are dropped, or about to be."""
        ...

    def change_endings(
        self, announced: Sequence[Ending], ended: Collection[str], expected_number: int
    ) -> int:
        """Add some of them, and remove others. Returns the number of this change.

        ended: ids of definitions of which all is forgotten.
        expected_number: of the last change.

        Raises:
            DefinitionChangedError: it is another.
            UnavailableError: too many wait.
        """
        ...
