"""Copy what a lake defines of feeds. Tables know their feeds by the ids that definitions have: a
copy without them would begin each source again, and every record would be there twice.
"""

from __future__ import annotations

from collections.abc import Iterator

from lakebed.errors import UnavailableError
from lakebed.model.feeds.definitions import (
    CHANGES_MAX,
    KINDS,
    DefinitionChange,
    DefinitionEntry,
    DefinitionKind,
    Drop,
    NamedDefinition,
    Put,
)
from lakebed.ports.feed_registry import FeedRegistry

TRIES_MAX = 10
"""A reading begins again when a definition changes meanwhile."""

_Entries = dict[tuple[DefinitionKind, str], DefinitionEntry]


class CopyDefinitions:
    """Makes a registry define what its source defines. In the copy no feed is to run before it is
    started."""

    def __init__(self, *, source: FeedRegistry, target: FeedRegistry) -> None:
        self._source = source
        self._target = target

    def run(self) -> int:
        """Copy what differs. Returns how many definitions were changed. Again does nothing.

        Raises:
            UnavailableError: definitions change all the time; try again.
            DefinitionChangedError: the copy's are changed by another process.
        """
        number, wanted = self._read()
        held = dict(_entries(self._target))
        if not wanted and not held:
            return 0
        changes: list[DefinitionChange] = [
            Put(_unstored(entry.definition), held[key].definition.version if key in held else 0)
            for key, entry in wanted.items()
            if key not in held or _said(held[key]) != _said(entry)
        ]
        changes += [
            Drop(*key, entry.definition.version) for key, entry in held.items() if key not in wanted
        ]
        self._target.lift(number)  # tables know versions up to there: those of the copy are newer
        for first in range(0, len(changes), CHANGES_MAX):
            self._target.change(changes[first : first + CHANGES_MAX])
        return len(changes)

    def _read(self) -> tuple[int, _Entries]:
        """Return the number of the source and its definitions, as of one moment."""
        for _ in range(TRIES_MAX):
            number = self._source.number()
            found = dict(_entries(self._source))
            if self._source.number() == number:
                return number, found
        raise UnavailableError("definitions of feeds change too often", hint="try again")


def _entries(
    registry: FeedRegistry,
) -> Iterator[tuple[tuple[DefinitionKind, str], DefinitionEntry]]:
    for kind in KINDS:
        after = ""
        while page := registry.list(kind, after=after):
            yield from (((kind, entry.definition.name), entry) for entry in page)
            after = page[-1].definition.name


def _said(entry: DefinitionEntry) -> tuple[str, bytes]:
    return entry.definition.id, entry.definition.body


def _unstored(definition: NamedDefinition) -> NamedDefinition:
    return NamedDefinition(
        kind=definition.kind, name=definition.name, id=definition.id, body=definition.body
    )
