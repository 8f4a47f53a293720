"""Applies a file of feeds: says what would change, then changes it by compare and set, all of it or
nothing."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec

from lakebed.config.definitions.connections import DefinedConnection
from lakebed.config.definitions.toml_fields import at_of
from lakebed.config.feeds import Feed, FeedFile, file_of
from lakebed.config.policies import Policy
from lakebed.config.policy_definitions import policy_of
from lakebed.config.stored_definitions import definition_body
from lakebed.errors import InvalidError, UnknownOutcomeError, did_you_mean
from lakebed.feed_errors import DefinitionChangedError
from lakebed.feeds.known_definitions import KnownDefinitions, read_definitions
from lakebed.model.feeds.definitions import DefinitionKind, NamedDefinition, Put, check_changes
from lakebed.ports.feed_registry import FeedRegistry

TRIES_MAX = 10
"""A plan that another process overtakes is made anew; so often, then it is refused."""

_ORDER = ("policy", "feed", "connection")


class SettingChange(msgspec.Struct, frozen=True):
    """A field of a definition that changes. None: it is not said."""

    path: str
    before: Any
    after: Any


class PlannedChange(msgspec.Struct, frozen=True, kw_only=True):
    """The change that is made, or would be made, to a definition.

    version: that it has afterwards; 0: not yet, as nothing was changed.
    goes_on: whether it is new and its table knows it: it was run from a file, and goes on there.
    """

    kind: DefinitionKind
    name: str
    action: Literal["create", "change", "keep"]
    fields: tuple[SettingChange, ...] = ()
    version: int = 0
    goes_on: bool = False


class IdFromFile(msgspec.Struct, frozen=True):
    """The id that a feed or a connection has in its table when it is run from a file: a process may
    hold records of it that it commits later.

    version: of its newest rows; of one without rows: that the file says.
    goes_on: whether the table knows it.
    """

    id: str
    version: int
    goes_on: bool


AskTable = Callable[[DefinitionKind, str, FeedFile, Mapping[str, str]], IdFromFile | None]
"""Says what a feed or a connection, by its name, is called when it is run from a file. None: it
has no table yet, the table has forgotten it, or its feed has another id. The mapping: ids of feeds
by their names, of those that the lake defines and of new ones that get theirs from the file."""


class ApplyDefinitions:
    """Makes a registry hold what a file says. What the file does not name stays.

    new_id: returns an id that was never used. check_connection: raises for a connection of a feed
    that cannot be, as its table is not there, or does not fit. check_feed: raises for a feed whose
    source is not there. ask_table: of one that is new: it gets the id that it has from a file, so
    that no record is taken twice. end_in_tables: is called with a new connection, and ends what
    runs it from a file where it cannot have that id. require_forgotten: is called before that with
    what is new: raises where a table still knows what was dropped under such a name.
    """

    def __init__(
        self,
        *,
        registry: FeedRegistry,
        new_id: Callable[[], str],
        check_connection: Callable[[DefinedConnection, Feed, Policy], None] = lambda *_: None,
        check_feed: Callable[[Feed], None] = lambda _: None,
        ask_table: AskTable = lambda *_: None,
        end_in_tables: Callable[[DefinedConnection], None] = lambda _: None,
        require_forgotten: Callable[[Collection[tuple[DefinitionKind, str]]], None] = (
            lambda _: None
        ),
    ) -> None:
        self._registry = registry
        self._new_id = new_id
        self._check_connection = check_connection
        self._check_feed = check_feed
        self._ask_table = ask_table
        self._end_in_tables = end_in_tables
        self._require_forgotten = require_forgotten

    def run(self, file: FeedFile, *, dry_run: bool = False, above: int = 0) -> list[PlannedChange]:
        """Return what changes, policies first.

        dry_run: nothing is changed.
        above: each definition of the file gets a version above this, also one that stays as it is:
            tables know such a version, and the registry was restored to an earlier day.

        Raises:
            InvalidError: what it says cannot be, with what is there; nothing was changed.
            DefinitionChangedError: other processes change definitions all the time.
            UnknownOutcomeError: no answer came; apply it again.
        """
        sent: list[PlannedChange] = []
        failure: DefinitionChangedError | UnknownOutcomeError | None = None
        if above and not dry_run:
            self._registry.lift(above)
        for _ in range(TRIES_MAX):
            known = read_definitions(self._registry)
            planned = self._plan(file, known, above)
            fresh = {(one.kind, one.name) for one in planned if one.action == "create"}
            if fresh and not dry_run:
                self._require_forgotten(fresh)
            plan, ids = self._joined(planned, file, known)
            puts = self._puts(plan, file, known, ids)
            check_changes(puts)
            if dry_run:
                return plan
            newest = max((one.version for one in ids.values()), default=0)
            if known.number < newest:  # versions rise above those that tables know
                self._registry.lift(newest)
                continue
            for kind, name in fresh:  # last: what runs a file is not ended for what cannot be
                if kind == "connection":
                    self._end_in_tables(file.connections[name])
            if not puts:  # perhaps since an earlier try landed, whose answer was lost
                return _with_versions(sent or plan, known)
            try:
                self._registry.change(puts, expected_number=known.number)
            except (DefinitionChangedError, UnknownOutcomeError) as error:
                failure = error
                sent = plan if isinstance(error, UnknownOutcomeError) else sent
                continue
            return _with_versions(plan, read_definitions(self._registry))
        assert failure is not None, "each try ends or fails"
        raise failure

    def _plan(self, file: FeedFile, known: KnownDefinitions, above: int) -> list[PlannedChange]:
        merged = file_of({**known.file.said, **file.said})
        keys = sorted(file.said, key=lambda key: (_ORDER.index(key[0]), key[1]))
        plan = [_planned(*key, file, known, above=above) for key in keys]
        changing = {(one.kind, one.name) for one in plan if one.action != "keep"}
        check_together(merged)
        for kind, name in changing:
            if kind == "feed":
                self._check_feed(merged.feeds[name])
        for name, connection in merged.connections.items():
            _check_same_ends(connection, known)
            if changing & {("connection", name), ("feed", connection.feed)}:
                feed = merged.feeds[connection.feed]
                policy = policy_of(connection.policy or feed.policy, merged.policies)
                self._check_connection(connection, feed, policy)
        return plan

    def _joined(
        self, plan: Sequence[PlannedChange], file: FeedFile, known: KnownDefinitions
    ) -> tuple[list[PlannedChange], dict[tuple[DefinitionKind, str], IdFromFile]]:
        """Return a plan that says what goes on from a file, and the ids from files."""
        merged = file_of({**known.file.said, **file.said})
        feeds = {name: known.entries["feed", name].definition.id for name in known.file.feeds}
        ids = dict[tuple[DefinitionKind, str], IdFromFile]()
        for one in plan:  # feeds come before their connections
            if one.action != "create":
                continue
            found = self._ask_table(one.kind, one.name, merged, feeds)
            if found is not None:
                ids[one.kind, one.name] = found
                feeds |= {one.name: found.id} if one.kind == "feed" else {}
        going = {key for key, found in ids.items() if found.goes_on}
        said = [msgspec.structs.replace(one, goes_on=(one.kind, one.name) in going) for one in plan]
        return said, ids

    def _puts(
        self,
        plan: Sequence[PlannedChange],
        file: FeedFile,
        known: KnownDefinitions,
        ids: Mapping[tuple[DefinitionKind, str], IdFromFile],
    ) -> list[Put]:
        def new_id(key: tuple[DefinitionKind, str]) -> str:
            return ids[key].id if key in ids else self._new_id()

        return [_put(one, file, known, new_id) for one in plan if one.action != "keep"]


def check_together(file: FeedFile) -> None:
    """Check that what definitions name is there.

    Raises:
        InvalidError: a feed or a policy is not, with the nearest; a policy extends itself; its
            parameters do not fit together.
    """
    for name in file.policies:
        policy_of(name, file.policies)
    for name, feed in file.feeds.items():
        policy_of(feed.policy, file.policies, at=at_of("feed", name, "policy"))
    for name, connection in file.connections.items():
        at = at_of("connection", name)
        if connection.feed not in file.feeds:
            hint = did_you_mean(connection.feed, file.feeds, what="feed")
            raise InvalidError(
                "no feed has this name", at=f"{at}.feed", feed=connection.feed, hint=hint
            )
        if connection.policy:
            policy_of(connection.policy, file.policies, at=f"{at}.policy")
        if not file.feeds[connection.feed].decoder:
            hint = f"say how records are read: `[feed.{connection.feed}] decoder = {{ ... }}`"
            raise InvalidError("a connection of a feed without a decoder", at=at, hint=hint)


def _planned(
    kind: DefinitionKind, name: str, file: FeedFile, known: KnownDefinitions, *, above: int
) -> PlannedChange:
    said = {field: value for field, value in file.said[kind, name].items() if field != "version"}
    before = known.file.said.get((kind, name))
    fields = tuple(_differences(before or {}, said, at_of(kind, name)))
    if before is None:
        return PlannedChange(kind=kind, name=name, action="create", fields=fields)
    is_old = known.entries[kind, name].definition.version <= above
    action: Literal["change", "keep"] = "change" if fields or is_old else "keep"
    return PlannedChange(kind=kind, name=name, action=action, fields=fields)


def _put(
    one: PlannedChange,
    file: FeedFile,
    known: KnownDefinitions,
    new_id: Callable[[tuple[DefinitionKind, str]], str],
) -> Put:
    entry = known.entries.get((one.kind, one.name))
    definition = NamedDefinition(
        kind=one.kind,
        name=one.name,
        id=new_id((one.kind, one.name)) if entry is None else entry.definition.id,
        body=definition_body(file.said[one.kind, one.name]),
    )
    return Put(definition, 0 if entry is None else entry.definition.version)


def _differences(
    before: Mapping[str, Any], after: Mapping[str, Any], at: str
) -> Iterator[SettingChange]:
    for name in sorted({*before, *after}):
        old, new, path = before.get(name), after.get(name), f"{at}.{at_of(name)}"
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            yield from _differences(old, new, path)
        elif old != new or type(old) is not type(new):
            yield SettingChange(path, old, new)


def _check_same_ends(connection: DefinedConnection, known: KnownDefinitions) -> None:
    before = known.file.connections.get(connection.name)
    if before is None:
        return
    for end in ("feed", "table"):
        if getattr(before, end) != getattr(connection, end):
            hint = f"drop the connection, or give the new one another name: `{end}` stays"
            at = at_of("connection", connection.name, end)
            raise InvalidError("a connection keeps its feed and its table", at=at, hint=hint)
    route, earlier = connection.routing, before.routing
    misled = None if route is None or earlier is None else route.misled(earlier)
    if misled is not None:
        hint = "add values, or give a new connection another name: what has a table keeps it"
        at = f"{at_of('connection', connection.name)}.route.{misled}"
        raise InvalidError("a route keeps which value leads into which table", at=at, hint=hint)


def _with_versions(plan: Sequence[PlannedChange], known: KnownDefinitions) -> list[PlannedChange]:
    """Return a plan with the versions that are stored now."""
    found = {key: entry.definition.version for key, entry in known.entries.items()}
    return [
        msgspec.structs.replace(one, version=found.get((one.kind, one.name), 0)) for one in plan
    ]
