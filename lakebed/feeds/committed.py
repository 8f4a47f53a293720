"""Reads how far a feed has come, as its table says: a worker reads it before it reads records."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from lakebed.errors import UnknownOutcomeError
from lakebed.feed_errors import DefinitionMovedError
from lakebed.model.feeds.positions import Position, decode_position, encode_position, position_name
from lakebed.model.feeds.tallies import Tally
from lakebed.model.names import ConnectionId, Micros, TransactionNumber
from lakebed.statestore.log_entries.feed_changes import was_dropped
from lakebed.statestore.log_entries.transactions import PositionChange, Transaction
from lakebed.statestore.open_table import OpenTable, Start, start_of
from lakebed.statestore.table_state.feed_records import (
    connection_of,
    errors_in_rows,
    taken_items,
    tally_of_hour,
)
from lakebed.statestore.table_state.window_records import watermark_of

SENT_MAX = 3
"""Most times that a commit without an answer is sent; each time it is tried for a minute."""


class FeedConnection(msgspec.Struct, frozen=True):
    """The connection that leads a feed into a table.

    version: of its definition.
    """

    id: ConnectionId
    version: int


class SplitAt(msgspec.Struct, frozen=True):
    """The position up to which a source split has been taken.

    value: the bytes that the table holds; None: it has none, and `position` is where to begin.
    """

    value: bytes | None
    position: Position

    def moved(self, connection: ConnectionId, split: str, to: Position, owner: int) -> PositionMove:
        """Return a move to another position, one revision later."""
        return PositionMove(
            split,
            SplitAt(encode_position(to), to),
            PositionChange(
                position_name(connection, split), self.value, encode_position(to), owner
            ),
        )


class PositionMove(msgspec.Struct, frozen=True):
    """A change of a position, and where the source split is when it is committed."""

    split: str
    to: SplitAt
    change: PositionChange


class CommittedFeed(msgspec.Struct, frozen=True):
    """The state of a connection, as its table holds it.

    start: where work begins that is based on it.
    is_defined: whether the table knows this version of its definition.
    splits: the source splits that were asked for and have a position.
    owners: of these, the number of the newest owner that moved them.
    errors_in_row: by source split, how many of the last records no row could be made of; left out:
        none.
    log_time: of the newest entry.
    sealed: windows of event time that end there, or before, are sealed; None: none is.
    """

    start: Start
    is_defined: bool
    splits: dict[str, SplitAt]
    owners: dict[str, int]
    errors_in_row: dict[str, int]
    log_time: Micros
    sealed: Micros | None


def read_committed(
    table: OpenTable, connection: FeedConnection, splits: Iterable[str]
) -> CommittedFeed:
    """Follow the table's log, then return how far source splits have been taken.

    Raises:
        DefinitionMovedError: the table knows a newer definition, or that it was dropped.
        CorruptError, NewerFormatError: a position cannot be read.
        UnavailableError: ask again.
    """
    table.head.follow()
    found, owners = dict[str, SplitAt](), dict[str, int]()
    with table.head.reading() as state:
        for split in splits:
            value, owner = state.position(position_name(connection.id, split)) or (None, 0)
            if value is not None:
                found[split] = SplitAt(value, decode_position(value))
                owners[split] = owner
        known, start = connection_of(state, connection.id), start_of(state)
        errors = {} if known is None else errors_in_rows(state, known)
        sealed = None if known is None else watermark_of(state, known).sealed
        log_time = state.head().at
    if known is not None and known.has_ended:
        raise was_dropped(known.id)
    version = 0 if known is None else known.version
    if version > connection.version:
        raise DefinitionMovedError(
            "the table knows a newer definition of this feed",
            version=connection.version,
            newest=version,
            hint="run the feed as its newest definition says",
        )
    return CommittedFeed(
        start, version == connection.version, found, owners, errors, log_time, sealed
    )


def taken_before(
    table: OpenTable, connection: FeedConnection, items: Sequence[bytes]
) -> set[bytes]:
    """Return which items of a source without order are in the table already, as far as this process
    has read its log."""
    if not items:
        return set()
    with table.head.reading() as state:
        known = connection_of(state, connection.id)
        return set() if known is None else set(taken_items(state, known, items))


def hour_of(table: OpenTable, connection: FeedConnection, split: str | None = None) -> Tally:
    """Return what became of the records of the hour of log time that the newest entry is in, as
    far as this process has read the log.

    split: of this source split; None: of all.
    """
    with table.head.reading() as state:
        found = connection_of(state, connection.id)
        return Tally() if found is None else tally_of_hour(state, found, state.head().at, split)


def count_of(position: Position) -> int:
    """Return the number of the next record."""
    if not isinstance(position.next, int):
        raise AssertionError("sources count their records")  # noqa: TRY004 - a bug of a source
    return position.next


def commit_until_known(table: OpenTable, transaction: Transaction) -> TransactionNumber:
    """Commit, and send the very same transaction again while it is not known whether it landed
    (protocol R4)."""
    for sent in range(1, SENT_MAX + 1):
        try:
            return table.head.commit(transaction)
        except UnknownOutcomeError:
            if sent == SENT_MAX:
                raise
    raise AssertionError("the last try returns or raises")
