"""Items that a round takes: messages of a source without order, and values that a policy lets in
once. Which of them are new is said by the table and by what the round has met itself."""

from __future__ import annotations

from collections.abc import Sequence
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
)
from lakebed.statestore.table_state.state import TableState


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


class OldItems:
    """Lets a table forget items of a connection that have been known for long enough.

    once_seconds: of log time.
    spared: of its newest items so many stay known, however old they are; nothing is forgotten
        before there are half as many more.
    """

    def __init__(self, once_seconds: int, *, spared: int = 0) -> None:
        self._seconds, self._spared = once_seconds, spared
        self._looked_upto = 0

    def forget(self, table: OpenTable, connection: FeedConnection) -> None:
        """Commit that they are forgotten, if there are some. So what the table still knows beside
        those that are spared was there within `once_seconds` and a minute.

        Raises:
            InvalidError, ConflictError, FencedError, GenerationError: begin again.
            ClockAheadError, UnavailableError, UnknownOutcomeError: as a commit.
        """
        now = table.due_time(lambda now: self._seconds_of_old(table, connection, now) is not None)
        seconds = self._seconds_of_old(table, connection, now)
        if seconds is None:
            return
        with table.head.reading() as state:
            start = start_of(state)
        commit_until_known(table, table.own(start, ForgetOldItems(connection.id, seconds)))

    def _seconds_of_old(
        self, table: OpenTable, connection: FeedConnection, now: Micros
    ) -> int | None:
        """Return how long ago items were taken that may be forgotten; None: there are none."""
        with table.head.reading() as state:
            known, upto = connection_of(state, connection.id), self._upto(state, now)
            if known is None or upto <= self._looked_upto or self._has_room(state, known):
                return None
            at = self._taken_before(state, known, now)
            if at is not None and has_items_upto(state, known, number_before(state, at)):
                return -((at - now) // MICROS_PER_SECOND)
        self._looked_upto = upto
        return None

    def _has_room(self, state: TableState, known: Connection) -> bool:
        """Whether a connection has so few items that all are spared."""
        spared = self._spared + self._spared // 2
        return bool(spared) and has_room_for(state, known, 0, spared)

    def _taken_before(self, state: TableState, known: Connection, now: Micros) -> Micros | None:
        """Return the log time before which items were taken that may be forgotten."""
        at = Micros(now - self._seconds * MICROS_PER_SECOND)
        if not self._spared:
            return at
        newest = newest_taken_since(state, known, self._spared)
        return None if newest is None else min(at, newest)

    def _upto(self, state: TableState, now: Micros) -> int:
        return number_before(state, Micros(now - self._seconds * MICROS_PER_SECOND))


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
