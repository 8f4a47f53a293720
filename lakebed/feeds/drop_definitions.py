"""Drops definitions that nothing uses, or all that uses them too."""

from __future__ import annotations

from lakebed.config.policies import PRESETS
from lakebed.errors import InvalidError
from lakebed.feed_errors import DefinitionChangedError
from lakebed.feeds.known_definitions import KnownDefinitions, read_definitions
from lakebed.feeds.operating.end_connections import EndConnections
from lakebed.model.feeds.definitions import DefinitionKind, Drop
from lakebed.ports.feed_registry import FeedRegistry

TRIES_MAX = 10


class DropDefinitions:
    """Drops feeds, connections and policies by name. Tables and their rows stay; what the tables
    know of feeds and connections is forgotten.

    end: lets them forget it.
    """

    def __init__(self, registry: FeedRegistry, end: EndConnections) -> None:
        self._registry = registry
        self._end = end

    def run(
        self, kind: DefinitionKind, name: str, *, cascade: bool = False
    ) -> list[tuple[DefinitionKind, str]]:
        """Drop a definition. Returns what was dropped. A table that cannot forget it now does so
        later.

        cascade: with a feed, its connections.

        Raises:
            InvalidError: there is none of that name, it is used, or it runs; nothing was changed.
            DefinitionChangedError: other processes change definitions all the time.
            UnknownOutcomeError: no answer came; look, then drop it again.
            UnavailableError: try again; nothing was changed.
        """
        self._end.run_quietly()  # what an earlier call may have left
        failure: DefinitionChangedError | None = None
        for _ in range(TRIES_MAX):
            known = read_definitions(self._registry)
            drops = _drops(known, kind, name, cascade=cascade)
            self._end.announce(known, [drop.key for drop in drops])
            try:
                self._registry.change(drops, expected_number=known.number)
            except DefinitionChangedError as error:
                failure = error
                continue
            self._end.run_quietly()
            return [drop.key for drop in drops]
        assert failure is not None, "each try ends or fails"
        raise failure


def _drops(
    known: KnownDefinitions, kind: DefinitionKind, name: str, *, cascade: bool
) -> list[Drop]:
    if kind == "policy" and name in PRESETS:
        hint = f"every lake has {', '.join(PRESETS)}"
        raise InvalidError("a policy that every lake has is not dropped", policy=name, hint=hint)
    entry = known.entry(kind, name)
    keys: list[tuple[DefinitionKind, str]] = []
    if kind == "policy" and (users := known.users_of(name)):
        hint = "let them name another policy first"
        raise InvalidError("the policy is in use", policy=name, by=_listed(users), hint=hint)
    if kind == "feed":
        if entry.wanted != "stopped":
            hint = f"stop it first: `lakebed feed stop {name}`"
            raise InvalidError("the feed is not stopped", feed=name, wanted=entry.wanted, hint=hint)
        names = dict.fromkeys(one.defined_as for one in known.connections_of(name))
        keys = [("connection", connection) for connection in names]
        if keys and not cascade:
            hint = "drop them first, or all with --cascade"
            users = [connection for _, connection in keys]
            raise InvalidError(
                "the feed has connections", feed=name, connections=_listed(users), hint=hint
            )
    found = [*keys, (kind, name)]
    entries = [known.entries[key] for key in found]
    return [
        Drop(*key, one.definition.version, one.revision)
        for key, one in zip(found, entries, strict=True)
    ]


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - 10} more" if len(names) > 10 else ""
    return ", ".join(names[:10]) + more
