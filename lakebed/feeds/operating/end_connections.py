"""Lets tables forget what they know of connections whose definitions were dropped.

What is to be forgotten is written down before a definition is dropped, and crossed out when it is
done. So it may be killed anywhere, and another process goes on with it: the next command that drops
or applies definitions, a worker, or `lakebed run`. Each table forgets a connection by one entry of
its log, however many ask for it. The entry leaves the id behind, with a version that no worker has:
one that wakes up late commits nothing for it (protocol R17), and does not begin anew.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial

import msgspec

from lakebed.errors import (
    ConflictError,
    FencedError,
    GenerationError,
    LakebedError,
    TableMissingError,
    UnknownOutcomeError,
)
from lakebed.feed_errors import DefinitionChangedError
from lakebed.feeds.committed import commit_until_known
from lakebed.feeds.known_definitions import KnownDefinitions, read_definitions
from lakebed.feeds.operating.position_admin import newest_state
from lakebed.model.feeds.definitions import DefinitionKind
from lakebed.model.feeds.endings import ENDED_VERSION, Ending, KnownIn
from lakebed.model.names import CommitId, ConnectionId, TableId, TransactionNumber, digest_of
from lakebed.observe import events
from lakebed.ports.feed_registry import FeedRegistry
from lakebed.statestore.log_entries.feed_changes import Define, ForgetConnection
from lakebed.statestore.log_entries.transactions import Change, Transaction
from lakebed.statestore.open_table import OpenTable, Start, start_of
from lakebed.statestore.table_state.feed_records import connection_of, positions_of
from lakebed.statestore.table_state.state import TableState

TRIES_MAX = 10
"""Most tries of a change that another process overtakes."""

Key = tuple[DefinitionKind, str]


class NotForgotten(msgspec.Struct, frozen=True):
    """A definition that was dropped, and of which a table could not forget all yet."""

    key: Key
    error: LakebedError


class EndConnections:
    """Forgets what was dropped. Safe to kill anywhere, and to run twice at once.

    known_in: returns where the connections of a definition may be known.
    find_table: returns a table by its id; None: it was dropped.
    may_cross_out: whether this process may change the list of what waits; else it forgets, and
        leaves the list as it is.
    """

    def __init__(
        self,
        *,
        registry: FeedRegistry,
        known_in: Callable[[KnownDefinitions, Key], tuple[KnownIn, ...]],
        find_table: Callable[[TableId], OpenTable | None],
        may_cross_out: bool = True,
    ) -> None:
        self._registry = registry
        self._known_in = known_in
        self._find_table = find_table
        self._may_cross_out = may_cross_out

    def announce(self, known: KnownDefinitions, keys: Sequence[Key]) -> None:
        """Write down what is to be forgotten once these definitions are dropped. If one of them is
        not, it stays as it is.

        Raises:
            DefinitionChangedError: other processes drop definitions all the time.
            UnavailableError, UnknownOutcomeError: try again.
        """
        found = [
            (key, known.entries[key].definition.id, self._known_in(known, key)) for key in keys
        ]
        self._change(
            [
                Ending(id=id_, kind=kind, name=name, known_in=known_in)
                for (kind, name), id_, known_in in found
                if known_in
            ],
            (),
        )

    def run(self) -> list[NotForgotten]:
        """Let tables forget what was dropped. Returns what is left, of which each is tried again
        with the next run.

        Raises:
            UnavailableError, UnknownOutcomeError, NewerFormatError: definitions cannot be read, or
                the list of what waits not be changed; run it again.
        """
        waiting = self._registry.endings().waiting
        if not waiting:
            return []
        entries = read_definitions(self._registry).entries.values()
        defined = {entry.definition.id for entry in entries}  # read later: who is not there is gone
        left, ended = list[NotForgotten](), list[str]()
        for one in waiting:
            if one.id in defined:
                continue
            try:
                for known_in in one.known_in:
                    self._forget(known_in)
            except LakebedError as error:
                left.append(NotForgotten((one.kind, one.name), error))
            else:
                ended.append(one.id)
        if ended and self._may_cross_out:
            self._change((), ended)
        return left

    def run_quietly(self) -> None:
        """Do as much as can be done now, and say what could not."""
        try:
            failures = [one.error for one in self.run()]
        except LakebedError as error:
            failures = [error]
        for failure in failures:
            events.emit(events.FEED_STORE_AWAY, code=failure.code(), reason=str(failure))

    def require(self, keys: Collection[Key]) -> None:
        """Let tables forget what was dropped under these names: what they know of it is no part of
        what is defined anew.

        Raises:
            LakebedError: a table could not; and as `run`.
        """
        for one in self.run():
            if one.key in keys:
                raise one.error

    def _forget(self, known_in: KnownIn) -> None:
        """Commit to a table that it forgets a connection, unless it has."""
        table = self._find_table(known_in.table)
        if table is None:
            return
        number = _committed(table, partial(_has_ended, known_in.connection), _forgetting(known_in))
        if number is not None:
            events.emit(
                events.FEED_CONNECTION_FORGOTTEN,
                table=table.name,
                connection=known_in.connection,
                number=number,
            )

    def _change(self, announced: Sequence[Ending], ended: Collection[str]) -> None:
        """Change the list of what waits, until it is so."""
        failure: DefinitionChangedError | UnknownOutcomeError | None = None
        for _ in range(TRIES_MAX):
            found = self._registry.endings()
            waiting = {one.id: one for one in found.waiting}
            fresh = [one for one in announced if waiting.get(one.id) != one]
            done = [id_ for id_ in ended if id_ in waiting]
            if not fresh and not done:  # perhaps since an earlier try landed
                return
            try:
                self._registry.change_endings(fresh, done, found.number)
            except (DefinitionChangedError, UnknownOutcomeError) as error:
                failure = error
                continue
            return
        assert failure is not None, "each try ends or fails"
        raise failure


def end_unknown(table: OpenTable, connection: ConnectionId) -> bool:
    """Let a table refuse all that comes by a connection that it does not know. Return whether it
    does, and has taken nothing of it: False: the connection has committed something meanwhile, and
    goes on, or was ended behind that.

    Raises:
        ConflictError, FencedError, UnavailableError, UnknownOutcomeError: try again.
        TableMissingError: the table was dropped.
    """

    def is_known(state: TableState) -> bool:
        return connection_of(state, connection) is not None

    table.head.follow()
    ended = _named(b"end", connection, table.id, (Define(connection, ENDED_VERSION),))
    _committed(table, is_known, ended)
    with newest_state(table) as state:
        return _has_ended(connection, state) and not any(positions_of(state, connection))


def _has_ended(connection: ConnectionId, state: TableState) -> bool:
    known = connection_of(state, connection)
    return known is not None and known.has_ended


def _committed(
    table: OpenTable, is_done: Callable[[TableState], bool], at: Callable[[Start], Transaction]
) -> TransactionNumber | None:
    """Commit what is made of where it begins. None: it is done, or the table was dropped."""
    for tried in range(1, TRIES_MAX + 1):
        with table.head.reading() as state:
            if state.head().dropped or is_done(state):
                return None
            start = start_of(state)
        try:
            return commit_until_known(table, at(start))
        except TableMissingError:  # it was dropped meanwhile
            return None
        except (ConflictError, FencedError, GenerationError):  # it was cleared meanwhile
            if tried == TRIES_MAX:
                raise
    raise AssertionError("the last try returns or raises")


def _forgetting(known_in: KnownIn) -> Callable[[Start], Transaction]:
    """Return what lets a table forget a connection."""
    ended = Define(known_in.connection, ENDED_VERSION)
    changes = (ended, ForgetConnection(known_in.connection), ended)
    return _named(b"forget", known_in.connection, known_in.table, changes)


def _named(
    verb: bytes, connection: ConnectionId, table: TableId, changes: tuple[Change, ...]
) -> Callable[[Start], Transaction]:
    """Return what makes the transaction. Its id is the same for all who try, so that the log takes
    one of them."""
    id_ = CommitId(digest_of(verb, connection.encode(), table.encode()).hex())
    return lambda at: Transaction(id_, digest_of(id_.encode()), at.base, at.generation, changes)
