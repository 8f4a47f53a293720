"""Definitions of feeds, connections and policies as a registry keeps them, and what may become of
one: pure decisions that every backend shares.

A definition's version is the number that the registry had after the change that made it so. So
versions of all definitions come from one count that only rises, and the greatest version of those
that a connection is made from rises whenever one of them changes, or is exchanged for another. An
entry's revision rises with each change of anything about it; the row of a dropped one stays.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

import msgspec

from lakebed.errors import InvalidError
from lakebed.feed_errors import DefinitionChangedError

DefinitionKind = Literal["feed", "connection", "policy"]
WantedState = Literal["stopped", "running", "suspended"]

KINDS: tuple[DefinitionKind, ...] = ("feed", "connection", "policy")
BODY_BYTES_MAX = 128 << 10
CHANGES_MAX, CHANGES_BYTES_MAX = 99, 1 << 20
"""Most changes at once, and most bytes of them: as DynamoDB's transactions, with one item more."""

NUMBER_MAX = 1 << 53
REASON_CHARACTERS_MAX = 1_000
BY_TABLE = "tables-failed"
"""Code of a stored failure that holds those of some tables of a route, as JSON."""
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,62}")
_ID = re.compile(r"[a-z0-9]{1,64}")


class NamedDefinition(msgspec.Struct, frozen=True, kw_only=True):
    """A definition that a user has made.

    id: random, or that of a file that is applied: this one follows from the name and the table, so
        it is given again when the registry was lost. It is not once the table has forgotten it.
    body: in a form that the settings know. It names secrets (`secret:NAME`), and holds none.
    version: the registry gives it; 0: it is not stored.
    """

    kind: DefinitionKind
    name: str
    id: str
    body: bytes
    version: int = 0


class FeedFailure(msgspec.Struct, frozen=True):
    """The failure that keeps a feed or a connection from going on.

    code: of the error.
    reason: what it says.
    version: of what failed: the newest of the definitions that its rows were made by.
    table: of a connection with a route: the one of its tables that is not filled any more.
    """

    code: str
    reason: str
    version: int
    table: str = ""


class DefinitionEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A definition with what is wanted of it, and how it failed.

    revision: rises with each change of the definition, of what is wanted, and of the failure.
    """

    definition: NamedDefinition
    revision: int
    wanted: WantedState = "stopped"
    failure: FeedFailure | None = None

    def failed(self, version: int, table: str = "") -> FeedFailure | None:
        """Return the failure, unless it is of an older version than this: then it has not failed.

        version: the newest of the definitions that its rows are made by.
        table: of a connection with a route: the one that is asked about.
        """
        found = failures_in(self.failure).get(table)
        return None if found is None or found.version < version else found


class Put(msgspec.Struct, frozen=True):
    """Stores a definition.

    expected_version: of the stored one; 0: there is none.
    """

    definition: NamedDefinition
    expected_version: int

    @property
    def key(self) -> tuple[DefinitionKind, str]:
        """Return the kind and name of the definition that it changes."""
        return self.definition.kind, self.definition.name


class Drop(msgspec.Struct, frozen=True):
    """Forgets a definition.

    expected_revision: of its entry, too; None: any.
    """

    kind: DefinitionKind
    name: str
    expected_version: int
    expected_revision: int | None = None

    @property
    def key(self) -> tuple[DefinitionKind, str]:
        """Return the kind and name of the definition that it changes."""
        return self.kind, self.name


class Want(msgspec.Struct, frozen=True):
    """Says what is wanted of a feed or a connection, and forgets its failure."""

    kind: DefinitionKind
    name: str
    wanted: WantedState
    expected_revision: int

    @property
    def key(self) -> tuple[DefinitionKind, str]:
        """Return the kind and name of the definition that it changes."""
        return self.kind, self.name


class NoteFailure(msgspec.Struct, frozen=True):
    """Says that a feed or a connection failed, by the version that did."""

    kind: DefinitionKind
    name: str
    failure: FeedFailure

    @property
    def key(self) -> tuple[DefinitionKind, str]:
        """Return the kind and name of the definition that it changes."""
        return self.kind, self.name


DefinitionChange = Put | Drop


class StoredDefinition(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the registry.

    body: None: the definition was dropped, and its revisions go on.
    """

    version: int
    revision: int
    id: str
    body: bytes | None
    wanted: WantedState = "stopped"
    failure: FeedFailure | None = None

    def entry(self, kind: DefinitionKind, name: str) -> DefinitionEntry | None:
        """Return what readers see; None: it was dropped."""
        if self.body is None:
            return None
        return DefinitionEntry(
            definition=NamedDefinition(
                kind=kind, name=name, id=self.id, body=self.body, version=self.version
            ),
            revision=self.revision,
            wanted=self.wanted,
            failure=self.failure,
        )


def after(
    stored: StoredDefinition | None, change: Put | Drop | Want | NoteFailure, number: int = 0
) -> StoredDefinition:
    """Return the row that a change leads to. number: of the registry after it, if it is counted.

    Raises:
        DefinitionChangedError: the row is not the one that the change expects.
    """
    match change:
        case Put(definition, expected):
            _expect(stored, change, expected)
            before = stored or StoredDefinition(version=0, revision=0, id="", body=None)
            is_new = before.body is None
            return StoredDefinition(
                version=number,
                revision=before.revision + 1,
                id=definition.id,
                body=definition.body,
                wanted="stopped" if is_new else before.wanted,
                failure=None if is_new else before.failure,
            )
        case Drop(_, _, expected, revision):
            known = _expect(stored, change, expected, revision)
            return StoredDefinition(
                version=known.version, revision=known.revision + 1, id=known.id, body=None
            )
        case Want(_, _, wanted, revision):
            known = _expect(stored, change, None, revision)
            return msgspec.structs.replace(
                known, revision=known.revision + 1, wanted=wanted, failure=None
            )
        case NoteFailure(_, _, failure):
            known = _expect(stored, change, None)
            if failure.version < known.version:
                raise _changed(change, known.version)
            kept = _with_failure(known.failure, failure)
            return msgspec.structs.replace(known, revision=known.revision + 1, failure=kept)


def has_happened(stored: StoredDefinition | None, change: Drop | NoteFailure) -> bool:
    """Return whether nothing is left to do: it was dropped at that version, or failed that way."""
    if stored is None:
        return False
    if isinstance(change, Drop):
        return stored.body is None and stored.version == change.expected_version
    failure = change.failure
    return stored.body is not None and failures_in(stored.failure).get(failure.table) == failure


def failures_in(stored: FeedFailure | None) -> dict[str, FeedFailure]:
    """Return the failures that a stored one stands for, by table; "": of the whole."""
    if stored is None:
        return {}
    if stored.code != BY_TABLE:
        return {"": stored}
    return {one.table: one for one in msgspec.json.decode(stored.reason, type=list[FeedFailure])}


def check_changes(changes: Sequence[DefinitionChange]) -> None:
    """Refuse what no registry takes.

    Raises:
        InvalidError: too many or too large, two of one definition, a name or an id that is none.
    """
    if len(changes) > CHANGES_MAX:
        hint = f"give at most {CHANGES_MAX} at once: take several files"
        raise InvalidError("too many definitions change at once", changes=len(changes), hint=hint)
    keys = [change.key for change in changes]
    for kind, name in keys:
        definition_name(kind, name)
        if keys.count((kind, name)) > 1:
            raise InvalidError(
                "a definition is changed twice at once",
                at=f"{kind}.{name}",
                hint="give each definition one change",
            )
    definitions = [change.definition for change in changes if isinstance(change, Put)]
    for one in definitions:
        if not _ID.fullmatch(one.id):
            hint = "use 1 to 64 of a-z and 0-9"
            raise InvalidError("not an id of a definition", id=ascii(one.id)[:80], hint=hint)
        if len(one.body) > BODY_BYTES_MAX:
            hint = f"give at most {BODY_BYTES_MAX} bytes"
            raise InvalidError("a definition is too large", at=f"{one.kind}.{one.name}", hint=hint)
    if sum(len(one.body) for one in definitions) > CHANGES_BYTES_MAX:
        hint = f"give at most {CHANGES_BYTES_MAX} bytes at once: take several files"
        raise InvalidError("definitions that change at once are too large", hint=hint)


def check_number(number: int) -> None:
    """Raise InvalidError if no registry has such a number."""
    if not 0 <= number <= NUMBER_MAX:
        hint = f"give 0 to {NUMBER_MAX}"
        raise InvalidError("not a version of definitions", got=number, hint=hint)


def definition_name(kind: DefinitionKind, name: object) -> str:
    """Return `name` as that of a definition.

    Raises:
        InvalidError: it is not of the form that is allowed.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        hint = "use 1 to 63 of A-Z, a-z, 0-9, '_' and '-', beginning with a letter"
        raise InvalidError(f"not a name of a {kind}", name=ascii(name)[:80], hint=hint)
    return name


def bounded(failure: FeedFailure) -> FeedFailure:
    """Return a failure whose reason is no longer than what is kept."""
    return msgspec.structs.replace(failure, reason=failure.reason[:REASON_CHARACTERS_MAX])


def _with_failure(stored: FeedFailure | None, failure: FeedFailure) -> FeedFailure:
    """Return what is stored when a failure joins those of other tables: each stands for itself."""
    if not failure.table:
        return failure
    found = {**failures_in(stored), failure.table: failure}
    kept = [one for table, one in sorted(found.items()) if table]
    version = max(one.version for one in kept)
    return FeedFailure(BY_TABLE, msgspec.json.encode(kept).decode(), version)


def _expect(
    stored: StoredDefinition | None,
    change: Put | Drop | Want | NoteFailure,
    version: int | None,
    revision: int | None = None,
) -> StoredDefinition:
    known = stored or StoredDefinition(version=0, revision=0, id="", body=None)
    found = 0 if known.body is None else known.version
    is_there = known.body is not None or isinstance(change, Put)
    if not is_there or version not in {None, found} or revision not in {None, known.revision}:
        raise _changed(change, found)
    return known


def _changed(change: Put | Drop | Want | NoteFailure, version: int) -> DefinitionChangedError:
    kind, name = change.key
    return DefinitionChangedError(
        "a definition is not as it was read", at=f"{kind}.{name}", version=version
    )
