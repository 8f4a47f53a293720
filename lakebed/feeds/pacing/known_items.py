"""Items that a round takes: messages of a source without order, and values that a policy lets in
once. Which of them are new is said by the table and by what the round has met itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from lakebed.errors import InvalidError
from lakebed.feeds.committed import FeedConnection, commit_until_known, taken_before
from lakebed.model.names import MICROS_PER_SECOND, Micros
from lakebed.ports.record_source import Records
from lakebed.statestore.log_entries.feed_changes import ForgetOldItems
from lakebed.statestore.open_table import OpenTable, start_of
from lakebed.statestore.table_state.feed_records import (
    Connection,
    connection_of,
    has_items_upto,
    has_room_for,
    newest_taken_since,
    number_before,
    positions_of,
)
from lakebed.statestore.table_state.state import ENTRY_TIME_SPACING, TableState
from lakebed.statestore.table_state.time_records import is_time_recorded_since, old_before

CLOCKS_APART_MAX = 86_400 * MICROS_PER_SECOND
"""Most microseconds between the log time at which an object is taken and its store's time, and from
when items are looked for to when they are forgotten: one wrong clock moves log time by a day."""
LOOK_SPACING = 86_400 * MICROS_PER_SECOND
"""Microseconds that readers go on before items are looked for again, while there are few."""


class KnownItems:
    """Follows the items of one round.

    items: of its records, where their source has some.
    """

    def __init__(
        self, table: OpenTable, connection: FeedConnection, items: Sequence[bytes]
    ) -> None:
        self._table, self._connection = table, connection
        self._met = taken_before(table, connection, items)
        self.fresh: list[bytes] = []

    def in_table(self, records: Records[Any]) -> list[tuple[int, int]]:
        """Return which records are of items that are known, as ranges of their indices; those of
        the others are known from now on."""
        found, at = list[tuple[int, int]](), 0
        for index, item in enumerate(records.items):
            count = records.item_counts[index] if records.item_counts else 1
            if item in self._met:
                found.append((at, at + count))
            else:
                self._meet(item)
            at += count
        return found

    def are_new(self, items: Sequence[bytes]) -> list[bool]:
        """Return which of some items, each given once, are known neither to the table nor to this
        round; they are from now on."""
        unmet = [item for item in items if item not in self._met]
        self._met |= taken_before(self._table, self._connection, unmet)
        found = [item not in self._met for item in items]
        for item in unmet:
            if item not in self._met:
                self._meet(item)
        return found

    def _meet(self, item: bytes) -> None:
        self._met.add(item)
        self.fresh.append(item)


class ForgottenItems(ABC):
    """Lets a table forget items of a connection."""

    def forget(self, table: OpenTable, connection: FeedConnection) -> None:
        """Commit that items are forgotten, if some are due.

        Raises:
            InvalidError, ConflictError, FencedError, GenerationError: begin again.
            CorruptError, NewerFormatError: a position cannot be read.
            ClockAheadError, UnavailableError, UnknownOutcomeError: as a commit.
        """
        with table.head.reading() as state:
            start = start_of(state)
        now = table.due_time(lambda now: self._seconds_of_old(table, connection, now) is not None)
        seconds = self._seconds_of_old(table, connection, now)
        if seconds is None:
            return
        with table.head.reading() as state:
            if is_time_recorded_since(state, start.base):  # its commit would be refused
                return
        commit_until_known(table, table.own(start, ForgetOldItems(connection.id, seconds)))

    def _seconds_of_old(
        self, table: OpenTable, connection: FeedConnection, now: Micros
    ) -> int | None:
        """Return how long ago items were taken that are forgotten; None: none is due."""
        with table.head.reading() as state:
            known = connection_of(state, connection.id)
            at = None if known is None else self._due(state, known, now)
        return None if at is None else -((at - now) // MICROS_PER_SECOND)

    @abstractmethod
    def _due(self, state: TableState, known: Connection, now: Micros) -> Micros | None:
        """Return a log time: items that were taken before it, of which there are some, are
        forgotten. None: none is due."""


class OldItems(ForgottenItems):
    """Forgets items that have been known for long enough. So what the table still knows beside
    those that are spared was there within `once_seconds` and a minute.

    once_seconds: of log time.
    spared: of its newest items so many stay known, however old they are; nothing is forgotten
        before there are half as many more.
    """

    def __init__(self, once_seconds: int, *, spared: int = 0) -> None:
        self._seconds, self._spared = once_seconds, spared
        self._looked_upto = 0

    def _due(self, state: TableState, known: Connection, now: Micros) -> Micros | None:
        before = old_before(state, now, self._seconds)
        upto = number_before(state, before)
        if upto <= self._looked_upto or self._has_room(state, known):
            return None
        at = self._unspared(state, known, before)
        if at is not None and has_items_upto(state, known, number_before(state, at)):
            return at
        self._looked_upto = upto
        return None

    def _has_room(self, state: TableState, known: Connection) -> bool:
        """Return whether a connection has so few items that all are spared."""
        spared = self._spared + self._spared // 2
        return bool(spared) and has_room_for(state, known, 0, spared)

    def _unspared(self, state: TableState, known: Connection, before: Micros) -> Micros | None:
        """Return the part of the time before a moment whose items are not among the newest."""
        if not self._spared:
            return before
        newest = newest_taken_since(state, known, self._spared)
        return None if newest is None else min(before, newest)


class PassedItems(ForgottenItems):
    """Forgets items of objects that no reader will look at again, however old they are.

    Readers pass over what was modified before a time that their cursors say. What was taken before
    that time was modified before it, too. So items of a source that is quiet, that is behind, or of
    which one part has stopped stay as they are.

    passed_before: returns that time for the cursor of a source split; 0: there is none.
    many: with more items than these they are forgotten by the minute, else by the day.
    """

    def __init__(self, passed_before: Callable[[bytes], Micros], *, many: int) -> None:
        self._passed_before, self._many = passed_before, many
        self._looked_at = Micros(0)

    def _due(self, state: TableState, known: Connection, now: Micros) -> Micros | None:
        splits = positions_of(state, known.id)
        passed = min((self._passed_before(at.resume) for _, at, _ in splits), default=Micros(0))
        at = Micros(min(passed, now) - CLOCKS_APART_MAX)
        many = not has_room_for(state, known, 0, self._many)
        if passed == 0 or at < self._looked_at + (ENTRY_TIME_SPACING if many else LOOK_SPACING):
            return None
        if has_items_upto(state, known, number_before(state, at)):
            return at
        self._looked_at = at
        return None


def check_once(once_seconds: int, remembered_seconds: int, *, at: str) -> None:
    """Refuse to know items for longer than a table remembers any.

    Raises:
        InvalidError: it is longer.
    """
    if once_seconds > remembered_seconds:
        hint = "make it shorter, or raise `job_id_seconds_min` of the table"
        raise InvalidError(
            "longer than the table remembers",
            at=at,
            once_seconds=once_seconds,
            job_id_seconds_min=remembered_seconds,
            hint=hint,
        )
