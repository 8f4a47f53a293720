"""Positions, ledger and gaps of the feeds that fill a table, for operators: looked at, and moved by
entries of the log that say who did it and why."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from lakebed.errors import CorruptError, InvalidError, did_you_mean
from lakebed.feed_errors import PositionMovedError
from lakebed.model.feeds.positions import (
    Position,
    connection_id,
    decode_position,
    encode_position,
    position_name,
)
from lakebed.model.feeds.tallies import Tally
from lakebed.model.names import ConnectionId, Micros, TransactionNumber
from lakebed.observe import events
from lakebed.statestore.log_entries.position_changes import DropPosition, ResetPosition
from lakebed.statestore.open_table import OpenTable, start_of
from lakebed.statestore.table_state.feed_records import (
    Connection,
    connection_of,
    errors_in_rows,
    gaps_of,
    ledger_of,
    living_connections,
    positions_of,
)
from lakebed.statestore.table_state.state import TableState
from lakebed.statestore.table_state.window_records import split_progress


class KeptPosition(msgspec.Struct, frozen=True, kw_only=True):
    """The position up to which a feed has taken a source split.

    feed: id of its connection.
    next: the record that comes next; hexadecimal digits where the source does not count them.
    revision: rises by one with each commit.
    owner: number of the worker that moved it last; 0: by no lease.
    event_time: the greatest of its records, microseconds since 1970; None: none is known.
    errors_in_row: its last records of which no row could be made.
    """

    feed: str
    source_split: str
    next: int | str
    revision: int
    incarnation: str
    owner: int
    event_time: int | None
    errors_in_row: int


class LedgerRow(msgspec.Struct, frozen=True, kw_only=True):
    """The tally of a source split's records in an hour of log time.

    at: begin of the hour, microseconds since 1970; of the day, for what is older than three days; 0
        for all that is older than a hundred.
    """

    feed: str
    source_split: str
    at: Micros
    tally: Tally


class KnownGap(msgspec.Struct, frozen=True, kw_only=True):
    """Records that a source no longer had when they were asked for.

    first, end: the position that was wanted, and the first one that there was, as the source
        writes them.
    number: of the entry that went on behind the gap.
    """

    feed: str
    source_split: str
    first: str
    end: str
    number: TransactionNumber
    reason: str


def positions(table: OpenTable, feed: str | None = None) -> list[KeptPosition]:
    """Return the positions of all feeds of a table, or of one, by feed and source split.

    feed: id of its connection.

    Raises:
        InvalidError: the table knows no such feed.
        CorruptError: a position cannot be read.
    """
    with newest_state(table) as state:
        return [
            kept for known in known_feeds(state, table, feed) for kept in _positions(state, known)
        ]


def ledger(table: OpenTable, feed: str | None = None) -> list[LedgerRow]:
    """Return what became of the records of all feeds of a table, or of one, by feed, source split
    and time. Raises: InvalidError: the table knows no such feed."""
    with newest_state(table) as state:
        return [
            LedgerRow(feed=known.id, source_split=name, at=at, tally=tally)
            for known in known_feeds(state, table, feed)
            for name, at, tally in ledger_of(state, known)
        ]


def gaps(table: OpenTable, feed: str | None = None) -> list[KnownGap]:
    """Return the newest thousand gaps of each feed, oldest first. Raises: InvalidError: the table
    knows no such feed."""
    with newest_state(table) as state:
        return [
            KnownGap(
                feed=known.id,
                source_split=gap.source_split,
                first=_shown(gap.first),
                end=_shown(gap.end),
                number=gap.number,
                reason=gap.reason,
            )
            for known in known_feeds(state, table, feed)
            for gap in gaps_of(state, known)
        ]


class OperatorMove(msgspec.Struct, frozen=True, kw_only=True):
    """The change that an operator makes to a position.

    feed: id of the connection.
    expects: the next record as it was listed; it is refused if the feed has gone on since. None:
        no position is there.
    who, why: kept in the log, for those who read it.
    """

    feed: str
    source_split: str
    expects: int | str | None
    who: str
    why: str


def reset_position(table: OpenTable, move: OperatorMove, *, to: int | str) -> TransactionNumber:
    """Let a source split be read from another record on. A batch that is under way is refused, and
    its worker goes on at the new position. Rows stay. Returns the number of the log entry.

    to: the next record; hexadecimal digits where the source does not count them.

    Raises:
        InvalidError: no such feed, no reason; nothing was changed.
        PositionMovedError: the position is another than expected; nothing was changed.
        ConflictError, UnavailableError: nothing was changed; call again.
        UnknownOutcomeError: perhaps it is done: list positions before calling again.
    """
    with newest_state(table) as state:
        (known,) = known_feeds(state, table, move.feed)
        expected, before = _expected(state, known, move)
        start = start_of(state)
        is_pending = _has_quarantined(state, known, move.source_split)
    at = _next(to, counts=before is None or isinstance(before.next, int))
    after = Position(1, at, is_pending=is_pending)
    if before is not None:  # what the adaptor needed beside was of the position before
        after = msgspec.structs.replace(
            before,
            revision=before.revision + 1,
            next=at,
            resume=b"",
            is_pending=is_pending or before.is_pending,
        )
    value = encode_position(after)
    change = ResetPosition(known.id, move.source_split, expected, value, move.who, move.why)
    number = table.head.commit(table.own(start, change))
    events.emit(events.POSITION_MOVED, table=table.name, connection=known.id, number=number)
    return number


def delete_position(table: OpenTable, move: OperatorMove) -> TransactionNumber:
    """Forget a source split: if the source has it, it is read from its beginning. Rows stay.
    Returns the number of the log entry. Raises as `reset_position`."""
    with newest_state(table) as state:
        (known,) = known_feeds(state, table, move.feed)
        expected, _ = _expected(state, known, move, readable=False)
        start = start_of(state)
    if expected is None:
        raise InvalidError("no such position", source_split=move.source_split, hint=_LIST)
    change = DropPosition(known.id, move.source_split, expected, move.who, move.why)
    number = table.head.commit(table.own(start, change))
    events.emit(events.POSITION_MOVED, table=table.name, connection=known.id, number=number)
    return number


_LIST = "`lakebed feed positions list TABLE` shows them"


@contextmanager
def newest_state(table: OpenTable) -> Iterator[TableState]:
    """See the newest version of a table's state. Raises: TableMissingError: it was dropped."""
    table.head.follow()
    with table.head.reading() as state:
        state.require_table()
        yield state


def positions_in(table: OpenTable, connection: ConnectionId) -> dict[str, Position]:
    """Return how far a connection has taken its source splits. Raises: TableMissingError: the table
    was dropped."""
    with newest_state(table) as state:
        return {name: position for name, position, _ in positions_of(state, connection)}


def known_feeds(state: TableState, table: OpenTable, feed: str | None) -> list[Connection]:
    """Return the feeds of a table, or the one that is named. Raises: InvalidError: the table knows
    no such feed."""
    if feed is None:
        return living_connections(state)
    known = connection_of(state, connection_id(feed))
    if known is None or known.has_ended:
        ids = [one.id for one in living_connections(state)]
        hint = did_you_mean(feed, ids, what="feed")
        raise InvalidError("the table knows no such feed", feed=feed, table=table.name, hint=hint)
    return [known]


def _has_quarantined(state: TableState, known: Connection, source_split: str) -> bool:
    """Return whether the quarantine may hold records of a source split: those that are taken again
    are looked for there, so that none is in both (R13)."""
    rows = ledger_of(state, known)
    return any(tally.quarantined for name, _, tally in rows if name == source_split)


def _positions(state: TableState, known: Connection) -> Iterator[KeptPosition]:
    times = {split.source_split: split.event_time for split in split_progress(state, known)}
    errors = errors_in_rows(state, known)
    for name, position, owner in positions_of(state, known.id):
        yield KeptPosition(
            feed=known.id,
            source_split=name,
            next=_next_shown(position),
            revision=position.revision,
            incarnation=position.incarnation,
            owner=owner,
            event_time=times.get(name),
            errors_in_row=errors.get(name, 0),
        )


def _expected(
    state: TableState, known: Connection, move: OperatorMove, *, readable: bool = True
) -> tuple[bytes | None, Position | None]:
    """Return the position that is there, if it is the expected one. One that cannot be read may be
    deleted, as `damaged`."""
    found, _ = state.position(position_name(known.id, move.source_split)) or (None, 0)
    try:
        before = None if found is None else decode_position(found)
        shown = None if before is None else _next_shown(before)
    except CorruptError:
        if readable:
            raise
        before, shown = None, DAMAGED
    if (shown is None) != (move.expects is None) or str(shown) != str(move.expects):
        raise PositionMovedError(
            "the position is not the one that was expected",
            source_split=move.source_split,
            expected=move.expects,
            found=shown,
            hint=_LIST,
        )
    return found, before


DAMAGED = "damaged"
"""The text to give as the expected position of one that cannot be read, to delete it."""


def _next_shown(position: Position) -> int | str:
    return position.next if isinstance(position.next, int) else position.next.hex()


def _next(given: int | str, *, counts: bool) -> int | bytes:
    """Return the next record as its source knows it. counts: whether that has numbers."""
    text = str(given)
    if counts and text.isascii() and text.isdigit() and int(text) < 1 << 63:
        return int(text)
    try:
        if not counts:
            return bytes.fromhex(text)
    except ValueError:
        pass
    hint = "write a number from 0 on" if counts else "write hexadecimal digits"
    raise InvalidError("not the position of a record", to=ascii(text)[:80], hint=hint)


def _shown(value: bytes) -> str:
    text = value.decode("ascii", "replace")
    return text if text.isprintable() and text.isascii() else value.hex()
