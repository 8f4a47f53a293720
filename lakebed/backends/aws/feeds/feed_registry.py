"""Definitions of feeds, in the table of DynamoDB that holds names of tables.

pk: "feed-definitions", "feed-connections" or "feed-policies". sk: a name. version, revision, id,
wanted: of it. body: missing where the definition was dropped. code, reason, failed: of its failure,
if it has one. change: a random number of the writer, so that it knows its own write when the answer
was lost. Items stay for ever, so that revisions never go back.
pk: "feed-number". sk: "number". number: how often definitions were changed. change: as above.
pk: "feed-number". sk: "flushes". number: of the last wish to flush. feeds: the number of the last
one, by feed. change: as above. Older releases do not read it.
pk: "feed-number". sk: "endings". number: how often it was changed. waiting: what tables are to
forget, as JSON. change: as above. Older releases do not read it.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress

import msgspec

from lakebed.backends.aws.clients import AmazonClients
from lakebed.backends.aws.items import IS_NEW, Item, Items, WriteCondition
from lakebed.backends.aws.requests import ConditionError
from lakebed.config.dynamo_tables import PARTITION_KEY, SORT_KEY
from lakebed.errors import UnavailableError
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
from lakebed.model.feeds.endings import Ending, Endings, endings_changed
from lakebed.model.feeds.flushes import Flushes, wished_meanwhile
from lakebed.ports.feed_registry import ENTRIES_MAX

CHANGES_TRIED_MAX = 20
"""A change begins again when the registry changes under its hands; so often, then it gives up."""

PARTITIONS: Mapping[DefinitionKind, str] = {
    "feed": "feed-definitions",
    "connection": "feed-connections",
    "policy": "feed-policies",
}
_NUMBER: Item = {PARTITION_KEY: {"S": "feed-number"}, SORT_KEY: {"S": "number"}}
_FLUSHES: Item = {PARTITION_KEY: {"S": "feed-number"}, SORT_KEY: {"S": "flushes"}}
_ENDINGS: Item = {PARTITION_KEY: {"S": "feed-number"}, SORT_KEY: {"S": "endings"}}


class DynamoFeedRegistry:
    """Definitions by kind and name. rng: names changes."""

    def __init__(self, clients: AmazonClients, table: str, *, rng: random.Random) -> None:
        self._items = Items(clients, table)
        self._rng = rng

    def number(self) -> int:
        """Return how often definitions were changed."""
        return _number_of(self._items.get(_NUMBER))

    def lift(self, number: int) -> None:
        """Let the registry's number be at least this."""
        check_number(number)
        condition = WriteCondition(
            "attribute_not_exists(#number) OR #number < :number",
            {":number": {"N": str(number)}},
            {"#number": "number"},
        )
        with suppress(ConditionError):  # it is as high already
            self._items.update(_NUMBER, "SET #number = :number", condition)

    def change(
        self, changes: Sequence[DefinitionChange], *, expected_number: int | None = None
    ) -> list[int]:
        """Change several definitions, all or none."""
        check_changes(changes)
        for _ in range(CHANGES_TRIED_MAX if changes else 0):
            number = self.number()
            if expected_number not in {None, number}:
                raise DefinitionChangedError("definitions have changed", number=number)
            before = {change.key: self._find(*change.key) for change in changes}
            new = {c.key: after(before[c.key], c, number + 1) for c in changes}
            token = self._token()
            counted = _counted(number, token)
            try:
                self._items.transact([counted, *(_write(k, before[k], new[k], token) for k in new)])
            except ConditionError:
                if not self._is_mine(_NUMBER, token):
                    continue
            return [new[change.key].version for change in changes]
        if not changes:
            return []
        raise UnavailableError("the registry of feeds changes too often", hint="try again")

    def put(self, definition: NamedDefinition, expected_version: int) -> int:
        """Store a definition."""
        (version,) = self.change([Put(definition, expected_version)])
        return version

    def drop(self, kind: DefinitionKind, name: str, expected_version: int) -> None:
        """Forget a definition."""
        change = Drop(kind, name, expected_version)
        if not has_happened(self._find(kind, name), change):
            self.change([change])

    def get(self, kind: DefinitionKind, name: str) -> DefinitionEntry | None:
        """Return a definition."""
        stored = self._find(kind, name)
        return None if stored is None else stored.entry(kind, name)

    def list(
        self, kind: DefinitionKind, *, after: str = "", entries_max: int = ENTRIES_MAX
    ) -> list[DefinitionEntry]:
        """Return definitions whose names come after one."""
        found: list[DefinitionEntry] = []
        more = True
        while more and len(found) < entries_max:
            start = {"S": after} if after else None
            page, more = self._items.page(PARTITIONS[kind], after=start, items_max=entries_max)
            entries = (_stored(item).entry(kind, item[SORT_KEY]["S"]) for item in page)
            found += [entry for entry in entries if entry is not None]
            after = page[-1][SORT_KEY]["S"] if page else after
        return found[:entries_max]

    def want(
        self, kind: DefinitionKind, name: str, wanted: WantedState, expected_revision: int
    ) -> int:
        """Say what is wanted of a feed or a connection."""
        return self._change(Want(kind, name, wanted, expected_revision)).revision

    def note_failure(self, kind: DefinitionKind, name: str, failure: FeedFailure) -> None:
        """Say that a feed or a connection failed."""
        change = NoteFailure(kind, name, bounded(failure))
        if not has_happened(self._find(kind, name), change):
            self._change(change)

    def flushes(self) -> Flushes:
        """Return which feeds are to commit what they hold."""
        return _flushes_of(self._items.get(_FLUSHES))

    def want_flush(self, feed: str, expected_number: int) -> int:
        """Say that a feed is to commit what it holds."""
        before = self.flushes()
        new, token = before.after(feed, expected_number), self._token()
        try:
            self._items.put(*_flushes_item(before, new, token))
        except ConditionError:
            if not self._is_mine(_FLUSHES, token):
                raise wished_meanwhile(feed, before.number) from None
        return new.number

    def endings(self) -> Endings:
        """Return what tables are to forget."""
        item = self._items.get(_ENDINGS)
        if not item:
            return Endings()
        waiting = msgspec.json.decode(item["waiting"]["B"], type=tuple[Ending, ...])
        return Endings(_number_of(item), waiting)

    def change_endings(
        self, announced: Sequence[Ending], ended: Collection[str], expected_number: int
    ) -> int:
        """Add some of them, and remove others."""
        before = self.endings()
        new, token = before.after(announced, ended, expected_number), self._token()
        item = {
            **_ENDINGS,
            "number": {"N": str(new.number)},
            "waiting": {"B": msgspec.json.encode(new.waiting)},
            "change": {"S": token},
        }
        try:
            self._items.put(item, _as_numbered(before.number))
        except ConditionError:
            if not self._is_mine(_ENDINGS, token):
                raise endings_changed(before.number) from None
        return new.number

    def _change(self, change: Want | NoteFailure) -> StoredDefinition:
        for _ in range(CHANGES_TRIED_MAX):
            before = self._find(*change.key)
            new, token = after(before, change), self._token()
            try:
                self._items.put(_item(change.key, new, token), _as_seen(before))
            except ConditionError:
                if not self._is_mine(_key(*change.key), token):
                    continue
            return new
        raise UnavailableError("a definition changes too often", name=change.name, hint="try again")

    def _find(self, kind: DefinitionKind, name: str) -> StoredDefinition | None:
        item = self._items.get(_key(kind, name))
        return _stored(item) if item else None

    def _is_mine(self, key: Item, token: str) -> bool:
        """Return whether an item is as a write of this process left it, whose answer was lost."""
        return self._items.get(key).get("change") == {"S": token}

    def _token(self) -> str:
        return f"{self._rng.getrandbits(64):016x}"


def _key(kind: DefinitionKind, name: str) -> Item:
    return {PARTITION_KEY: {"S": PARTITIONS[kind]}, SORT_KEY: {"S": name}}


def _counted(number: int, token: str) -> Item:
    """Return the write that counts a change of definitions, if none came in between."""
    item = {**_NUMBER, "number": {"N": str(number + 1)}, "change": {"S": token}}
    return {"Put": {"Item": item, **_as_numbered(number).arguments()}}


def _write(
    key: tuple[DefinitionKind, str],
    before: StoredDefinition | None,
    new: StoredDefinition,
    token: str,
) -> Item:
    return {"Put": {"Item": _item(key, new, token), **_as_seen(before).arguments()}}


def _as_numbered(number: int) -> WriteCondition:
    """Return the condition that an item has still the number that was read; 0: that it is new."""
    seen = WriteCondition("#number = :seen", {":seen": {"N": str(number)}}, {"#number": "number"})
    return seen if number else WriteCondition(IS_NEW)


def _as_seen(before: StoredDefinition | None) -> WriteCondition:
    """Return the condition that an item is the one that was read."""
    if before is None:
        return WriteCondition(IS_NEW)
    return WriteCondition("revision = :seen", {":seen": {"N": str(before.revision)}})


def _item(key: tuple[DefinitionKind, str], stored: StoredDefinition, token: str) -> Item:
    item = {
        **_key(*key),
        "version": {"N": str(stored.version)},
        "revision": {"N": str(stored.revision)},
        "id": {"S": stored.id},
        "wanted": {"S": stored.wanted},
        "change": {"S": token},
    }
    if stored.body is not None:
        item["body"] = {"B": stored.body}
    if stored.failure is not None:
        item["code"] = {"S": stored.failure.code}
        item["reason"] = {"S": stored.failure.reason}
        item["failed"] = {"N": str(stored.failure.version)}
    return item


def _stored(item: Item) -> StoredDefinition:
    failure = None
    if "code" in item:
        failure = FeedFailure(item["code"]["S"], item["reason"]["S"], int(item["failed"]["N"]))
    return StoredDefinition(
        version=int(item["version"]["N"]),
        revision=int(item["revision"]["N"]),
        id=item["id"]["S"],
        body=bytes(item["body"]["B"]) if "body" in item else None,
        wanted=item["wanted"]["S"],
        failure=failure,
    )


def _number_of(item: Item) -> int:
    return int(item["number"]["N"]) if item else 0


def _flushes_of(item: Item) -> Flushes:
    by_feed = {name: int(number["N"]) for name, number in item.get("feeds", {"M": {}})["M"].items()}
    return Flushes(_number_of(item), by_feed)


def _flushes_item(before: Flushes, new: Flushes, token: str) -> tuple[Item, WriteCondition]:
    feeds = {name: {"N": str(number)} for name, number in new.by_feed.items()}
    item = {
        **_FLUSHES,
        "number": {"N": str(new.number)},
        "feeds": {"M": feeds},
        "change": {"S": token},
    }
    return item, _as_numbered(before.number)
