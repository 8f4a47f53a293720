"""Defines what feeds say in the log of a table they fill: by which definition, and what became of
each record. How far a source has been taken is said beside them, by `PositionChange`.

`check` may refuse and changes nothing. `apply` never refuses (protocol H4); for a released format
what it does never changes (H14).
"""

from __future__ import annotations

from typing import ClassVar

import msgspec

from lakebed.errors import InvalidError, TableBusyError
from lakebed.feed_errors import DefinitionMovedError, ItemsTakenError
from lakebed.model.feeds.positions import connection_id, position_name
from lakebed.model.feeds.tallies import Tally
from lakebed.model.feeds.windows import check_splits
from lakebed.model.names import (
    ITEM_BYTES,
    MICROS_PER_SECOND,
    ConnectionId,
    Micros,
    TransactionNumber,
)
from lakebed.statestore.table_state.feed_records import (
    Connection,
    Gap,
    add_tally,
    connection_of,
    connections,
    forget_connection,
    forget_items,
    forget_old_items,
    forget_taken,
    has_room_for,
    number_before,
    put_connection,
    put_errors_in_row,
    put_gap,
    put_items,
    taken_items,
)
from lakebed.statestore.table_state.state import Moment, TableState
from lakebed.statestore.table_state.window_records import (
    expect_splits,
    forget_windows,
    split_progress,
)

FEED_FORMAT = 5
"""Format of log entries that change feeds."""

ITEMS_MAX = 2_000_000
"""Most items that a state remembers of a connection, 60 MB: beyond it new ones wait until old ones
are forgotten."""
ONCE_SECONDS_MIN = 60
REASON_BYTES_MAX = 1_000


class Define(msgspec.Struct, frozen=True, array_like=True, tag="define"):
    """Let rows of a connection be made by this version of its definition from now on, or a newer
    one (R17). The first one makes the connection known.

    source_splits: that the feed begins with: they hold its watermark back until they commit or are
        idle (R18). Those that are known already stay as they are.
    """

    connection: ConnectionId
    version: int
    source_splits: tuple[str, ...] = ()

    def check(self, state: TableState) -> None:
        connection_id(self.connection)
        if self.version < 1:
            raise InvalidError(
                "a definition's version is below 1",
                version=self.version,
                hint="count versions from 1",
            )
        for name in self.source_splits:
            position_name(self.connection, name)
        check_splits(self.source_splits)
        known = connection_of(state, self.connection)
        if known is not None and known.version > self.version:
            raise _moved(known, self.version)

    def apply(self, state: TableState, moment: Moment) -> None:
        known = put_connection(state, self.connection, self.version, moment.number)
        expect_splits(state, known, self.source_splits)


class Count(msgspec.Struct, frozen=True, array_like=True, tag="count"):
    """The tally of the records of a source split that this transaction takes (R12).

    version: of the definition by which its rows were made.
    errors_in_row: how many records at its end no row could be made of, with those before this
        commit if it took no other. So the policy's bound counts on with the next owner.
    """

    connection: ConnectionId
    version: int
    source_split: str
    tally: Tally
    errors_in_row: int = 0

    def check(self, state: TableState) -> None:
        check_version(state, self.connection, self.version)
        position_name(self.connection, self.source_split)
        self.tally.check()
        if self.errors_in_row < 0:
            raise InvalidError(
                "errors in a row are fewer than none",
                errors_in_row=self.errors_in_row,
                hint="count them from 0",
            )

    def apply(self, state: TableState, moment: Moment) -> None:
        known = connection_of(state, self.connection)
        if known is not None:
            add_tally(state, known, self.source_split, moment.at, self.tally)
            put_errors_in_row(state, known, self.source_split, self.errors_in_row)


class TakeItems(msgspec.Struct, frozen=True, array_like=True, tag="items"):
    """Items of a source without order, such as messages of a queue: each is taken once (R8).

    items: 16 bytes each.
    """

    connection: ConnectionId
    items: tuple[bytes, ...]
    MAX: ClassVar[int] = ITEMS_MAX

    def check(self, state: TableState) -> None:
        known = known_connection(state, self.connection)
        if any(len(item) != ITEM_BYTES for item in self.items):
            raise InvalidError(
                "an item's name has another length",
                connection=self.connection,
                hint=f"give names of {ITEM_BYTES} bytes",
            )
        if not self.items or len(set(self.items)) < len(self.items):
            raise InvalidError(
                "a commit takes no item, or one twice",
                connection=self.connection,
                hint="name at least one item, and each once",
            )
        taken = taken_items(state, known, self.items)
        if taken:
            raise ItemsTakenError(
                "some items are in the table already",
                connection=self.connection,
                taken=len(taken),
                of=len(self.items),
                hint="drop them, then send what is left",
            )
        if not has_room_for(state, known, len(self.items), self.MAX):
            raise TableBusyError(
                "too many items are remembered",
                connection=self.connection,
                max=self.MAX,
                hint="say a shorter `once_seconds`, of objects within a day, or divide what comes"
                " among several feeds",
            )

    def apply(self, state: TableState, moment: Moment) -> None:
        known = connection_of(state, self.connection)
        if known is not None:
            put_items(state, known, self.items, moment.number)


class ForgetItems(msgspec.Struct, frozen=True, array_like=True, tag="forget_items"):
    """Items that entries below a number took can not come again, and are forgotten (R8). Of old
    logs: nothing writes it any longer."""

    below: TransactionNumber

    def check(self, state: TableState) -> None:
        if self.below > state.head().floor:
            raise InvalidError(
                "items are forgotten above the write floor",
                below=self.below,
                hint=f"forget what lies below {state.head().floor}, the write floor",
            )

    def apply(self, state: TableState, moment: Moment) -> None:
        forget_items(state, self.below)


class ForgetOldItems(msgspec.Struct, frozen=True, array_like=True, tag="forget_old_items"):
    """Items of a connection that were taken some time ago may come again, and are forgotten.

    seconds: of log time, at the least, and at the most a minute more.
    """

    connection: ConnectionId
    seconds: int

    def check(self, state: TableState) -> None:
        known_connection(state, self.connection)
        if self.seconds < ONCE_SECONDS_MIN:
            raise InvalidError(
                "items are known for too short a time",
                seconds=self.seconds,
                hint=f"let them be known for {ONCE_SECONDS_MIN} seconds or more",
            )

    def apply(self, state: TableState, moment: Moment) -> None:
        known = connection_of(state, self.connection)
        if known is not None:
            at = Micros(moment.at - self.seconds * MICROS_PER_SECOND)
            forget_old_items(state, known, number_before(state, at))


class RecordGap(msgspec.Struct, frozen=True, array_like=True, tag="gap"):
    """A source no longer had records that were never taken; its reader goes on behind them (R15).

    first, end: the position that was wanted, and the first one that there was, as the source
        writes them.
    """

    connection: ConnectionId
    version: int
    source_split: str
    first: bytes
    end: bytes
    reason: str

    def check(self, state: TableState) -> None:
        check_version(state, self.connection, self.version)
        position_name(self.connection, self.source_split)
        if len(self.reason.encode("utf-8", "replace")) > REASON_BYTES_MAX:
            raise InvalidError(
                "a reason is too long", bytes_max=REASON_BYTES_MAX, hint="shorten the reason"
            )

    def apply(self, state: TableState, moment: Moment) -> None:
        known = connection_of(state, self.connection)
        if known is not None:
            gap = Gap(self.source_split, self.first, self.end, moment.number, self.reason)
            put_gap(state, known, gap)


class ForgetConnection(msgspec.Struct, frozen=True, array_like=True, tag="forget_connection"):
    """A connection ended: its positions, its ledger and its items are forgotten, its rows stay."""

    connection: ConnectionId

    def check(self, state: TableState) -> None:
        known_connection(state, self.connection)

    def apply(self, state: TableState, moment: Moment) -> None:
        known = connection_of(state, self.connection)
        if known is not None:
            forget_windows(state, known)
            forget_connection(state, known)


class BeginAgain(msgspec.Struct, frozen=True, array_like=True, tag="begin_again"):
    """All rows go with this entry, and each connection begins its source again, by the definition
    that it has. Its watermark waits for the source splits that are known, as at the beginning."""

    def check(self, state: TableState) -> None:
        """Nothing can refuse it."""

    def apply(self, state: TableState, moment: Moment) -> None:
        for known in connections(state):
            names = [split.source_split for split in split_progress(state, known)]
            forget_windows(state, known)
            forget_taken(state, known)
            expect_splits(state, known, names)


def known_connection(state: TableState, id_: ConnectionId) -> Connection:
    """Return a connection. Raises: DefinitionMovedError: the table does not know it."""
    known = connection_of(state, id_)
    if known is None:
        raise DefinitionMovedError(
            "the table does not know this connection",
            connection=id_,
            hint="it was ended, or never begun: look at its definition",
        )
    return known


def check_version(state: TableState, id_: ConnectionId, version: int) -> Connection:
    """Return a connection whose newest definition is this version.

    Raises:
        DefinitionMovedError: a newer one is known, or the connection is not.
        InvalidError: it is not known yet.
    """
    known = known_connection(state, id_)
    if version < known.version:
        raise _moved(known, version)
    if version > known.version:
        hint = "define it first, in this commit or an earlier one"
        raise InvalidError("a definition that the table does not know", version=version, hint=hint)
    return known


def _moved(known: Connection, version: int) -> DefinitionMovedError:
    if known.has_ended:
        return was_dropped(known.id)
    return DefinitionMovedError(
        "the connection has a newer definition",
        connection=known.id,
        version=version,
        newest=known.version,
        hint="make the rows anew, as the newer one says",
    )


def was_dropped(id_: ConnectionId) -> DefinitionMovedError:
    """Return the error of who works by a definition that was dropped."""
    return DefinitionMovedError(
        "the connection was dropped, and its table has forgotten it",
        connection=id_,
        hint="define it again, or give it another name in its file: it begins anew",
    )
