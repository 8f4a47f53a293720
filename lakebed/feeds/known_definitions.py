"""Reads what a registry defines at one moment, and makes of it what a worker needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from lakebed.config.definitions.connections import DefinedConnection
from lakebed.config.feeds import Feed, FeedFile
from lakebed.config.policies import Policy
from lakebed.config.policy_definitions import policy_chain, policy_of
from lakebed.config.stored_definitions import stored_file
from lakebed.errors import InvalidError, UnavailableError, did_you_mean
from lakebed.model.feeds.definitions import (
    KINDS,
    DefinitionEntry,
    DefinitionKind,
    FeedFailure,
    WantedState,
)
from lakebed.model.names import digest_of
from lakebed.ports.feed_registry import FeedRegistry

READS_MAX = 20
"""A reading begins again when a definition changes meanwhile; so often, then it gives up."""

DEFINITIONS_MAX = 10_000


class FeedDefinition(msgspec.Struct, frozen=True, kw_only=True):
    """A feed with all that its landing needs.

    id: as that of `NamedDefinition`.
    version: of the newest of the definitions that its rows are made by.
    policy: its parameters.
    """

    feed: Feed
    id: str
    version: int
    policy: Policy
    wanted: WantedState
    failed: FeedFailure | None

    @property
    def runs_in_function(self) -> bool:
        """Return whether workers leave it to the function that takes what trickles."""
        return self.feed.run == "function"


class ConnectionDefinition(msgspec.Struct, frozen=True, kw_only=True):
    """A connection with all that it needs; of one with a route, what fills one of its tables: it is
    a connection of its own, which is called `CONNECTION/TABLE`.

    feed_id: of its feed.
    Other fields: as those of a feed.
    """

    connection: DefinedConnection
    feed: Feed
    id: str
    feed_id: str
    version: int
    policy: Policy
    failed: FeedFailure | None

    @property
    def defined_as(self) -> str:
        """Return the name of its definition."""
        return self.connection.name.partition("/")[0]


class KnownDefinitions(msgspec.Struct, frozen=True, kw_only=True):
    """The definitions that a registry holds.

    number: of the registry, at the moment of reading.
    file: what the definitions say together.
    """

    number: int
    entries: Mapping[tuple[DefinitionKind, str], DefinitionEntry]
    file: FeedFile

    def entry(self, kind: DefinitionKind, name: str) -> DefinitionEntry:
        """Return a definition. Raises: InvalidError: there is none of that name."""
        found = self.entries.get((kind, name))
        if found is None:
            names = [known for of, known in self.entries if of == kind]
            hint = did_you_mean(name, names, what=kind)
            raise InvalidError(
                f"no {kind} has this name", **{kind: ascii(name)[1:80].rstrip("'")}, hint=hint
            )
        return found

    def feed(self, name: str) -> FeedDefinition:
        """Return a feed. Raises: InvalidError: there is none of that name."""
        entry, feed = self.entry("feed", name), self.file.feeds[name]
        version = self._version(("feed", name), policy=feed.policy)
        return FeedDefinition(
            feed=feed,
            id=entry.definition.id,
            version=version,
            policy=policy_of(feed.policy, self.file.policies),
            wanted=entry.wanted,
            failed=entry.failed(version),
        )

    def feeds(self) -> Iterator[FeedDefinition]:
        """Yield all feeds, by name."""
        yield from map(self.feed, sorted(self.file.feeds))

    def connection(self, name: str) -> ConnectionDefinition:
        """Return a connection; of one with a route, what fills the table of `CONNECTION/TABLE`.

        Raises:
            InvalidError: there is none of that name.
        """
        known = {one.connection.name: one for one in self.connections(name.partition("/")[0])}
        if name not in known:
            hint = did_you_mean(name, known, what="connection")
            raise InvalidError(
                "no connection has this name", connection=ascii(name)[:80], hint=hint
            )
        return known[name]

    def connections(self, name: str) -> list[ConnectionDefinition]:
        """Return a connection; of one with a route, one for each of its tables.

        Raises:
            InvalidError: there is none of that name.
        """
        entry, connection = self.entry("connection", name), self.file.connections[name]
        feed = self.file.feeds[connection.feed]
        policy = connection.policy or feed.policy
        keys: tuple[tuple[DefinitionKind, str], ...] = (
            ("connection", name),
            ("feed", connection.feed),
        )
        version = self._version(*keys, policy=policy)
        whole = ConnectionDefinition(
            connection=connection,
            feed=feed,
            id=entry.definition.id,
            feed_id=self.entry("feed", connection.feed).definition.id,
            version=version,
            policy=policy_of(policy, self.file.policies),
            failed=entry.failed(version),
        )
        return [
            msgspec.structs.replace(one, failed=entry.failed(version, one.connection.table))
            if connection.route
            else one
            for one in by_table(whole)
        ]

    def connections_of(self, feed: str) -> list[ConnectionDefinition]:
        """Return the connections of a feed, by name; of one with a route, one for each table."""
        named = sorted(n for n, one in self.file.connections.items() if one.feed == feed)
        return [one for name in named for one in self.connections(name)]

    def users_of(self, policy: str) -> list[str]:
        """Return what names a policy: `feed.orders`."""
        feeds = [f"feed.{n}" for n, one in self.file.feeds.items() if one.policy == policy]
        file = self.file
        connections = [f"connection.{n}" for n, c in file.connections.items() if c.policy == policy]
        policies = [f"policy.{n}" for n, one in file.policies.items() if one.extends == policy]
        return sorted([*feeds, *connections, *policies])

    def _version(self, *keys: tuple[DefinitionKind, str], policy: str) -> int:
        """Return the newest version of what rows are made by. It rises when one of them changes,
        or is exchanged for another: all versions come from one count."""
        chain = policy_chain(policy, self.file.policies)
        policies: list[tuple[DefinitionKind, str]] = [("policy", name) for name in chain]
        known = [self.entries[key] for key in (*keys, *policies) if key in self.entries]
        return max(entry.definition.version for entry in known)


def by_table(whole: ConnectionDefinition) -> list[ConnectionDefinition]:
    """Return a connection as it is run: one with a route is a connection for each table, with an id
    of its own that follows from its table's name. So positions, ledger and quarantine of one are
    nothing to the next (protocol R7)."""
    connection = whole.connection
    if not connection.route:
        return [whole]
    return [
        msgspec.structs.replace(
            whole,
            connection=msgspec.structs.replace(
                connection, name=f"{connection.name}/{table}", table=table
            ),
            id=whole.id and digest_of(b"route", whole.id.encode(), table.encode()).hex(),
        )
        for table in connection.tables
    ]


def is_landed(definition: FeedDefinition, connections: Sequence[ConnectionDefinition]) -> bool:
    """Return whether a feed's records are kept as they come."""
    feed = definition.feed
    taken = [one for one in connections if one.feed.name == feed.name]
    if feed.landing is None:
        return not taken or not feed.source.is_ordered
    return feed.landing


def read_definitions(registry: FeedRegistry) -> KnownDefinitions:
    """Return all definitions as they were at one moment.

    Raises:
        UnavailableError: they change all the time, or there are too many.
        NewerFormatError: one says what this release does not know.
    """
    for _ in range(READS_MAX):
        number = registry.number()
        entries = {(e.definition.kind, e.definition.name): e for e in _all(registry)}
        if registry.number() == number:
            file = stored_file(entry.definition for entry in entries.values())
            return KnownDefinitions(number=number, entries=entries, file=file)
    raise UnavailableError("definitions of feeds change too often", hint="try again")


def _all(registry: FeedRegistry) -> Iterator[DefinitionEntry]:
    count = 0
    for kind in KINDS:
        after = ""
        while page := registry.list(kind, after=after):
            yield from page
            after, count = page[-1].definition.name, count + len(page)
            if count > DEFINITIONS_MAX:
                hint = f"drop what is not used: at most {DEFINITIONS_MAX} are read"
                raise UnavailableError("there are too many definitions", hint=hint)
