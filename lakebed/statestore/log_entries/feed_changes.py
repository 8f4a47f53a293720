"""What feeds say in the log of a table they fill: by which definition, and what became of each
record. How far a source has been taken is said beside them, by `PositionChange`.

`check` may refuse and changes nothing. `apply` never refuses (protocol H4); for a released format
what it does never changes (H14).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

import msgspec

from lakebed.errors import InvalidError, TableBusyError
from lakebed.feed_errors import DefinitionMovedError, ItemsTakenError
from lakebed.model.feeds.positions import connection_id, position_name
from lakebed.model.feeds.tallies import Tally
from lakebed.model.names import ConnectionId, TransactionNumber
from lakebed.statestore.table_state.feed_records import (
    Connection,
    Gap,
    add_tally,
    connection_of,
    forget_connection,
    forget_items,
    has_room_for,
    put_connection,
    put_gap,
    put_items,
    taken_items,
)
from lakebed.statestore.table_state.state import Moment, TableState

FEED_FORMAT = 5
"""Of log entries with such changes."""

ITEM_BYTES = 16
ITEMS_MAX = 2_000_000
"""That a state remembers of a connection, 60 MB: beyond it new ones wait until old ones are
forgotten."""
REASON_BYTES_MAX = 1_000


class Define(msgspec.Struct, frozen=True, array_like=True, tag="define"):
    """Let rows of a connection be made by this version of its definition from now on, or a newer
    one (R17). The first one makes the connection known."""

    connection: ConnectionId
    version: int

    def check(self, state: TableState) -> None:
        connection_id(self.connection)
        if self.version < 1:
            raise InvalidError("versions of a definition count from 1", version=self.version)
        known = connection_of(state, self.connection)
        if known is not None and known.version > self.version:
            raise _moved(known, self.version)

    def apply(self, state: TableState, moment: Moment) -> None:
        put_connection(state, self.connection, self.version, moment.number)


class Count(msgspec.Struct, frozen=True, array_like=True, tag="count"):
    """What became of the records of a source split that this transaction takes (R12).

    version: of the definition by which its rows were made.
    """

    connection: ConnectionId
    version: int
    source_split: str
    tally: Tally

    def check(self, state: TableState) -> None:
        _check_version(state, self.connection, self.version)
        position_name(self.connection, self.source_split)
        self.tally.check()

    def apply(self, state: TableState, moment: Moment) -> None:
        known = connection_of(state, self.connection)
        if known is not None:
            add_tally(state, known, self.source_split, moment.at, self.tally)


class TakeItems(msgspec.Struct, frozen=True, array_like=True, tag="items"):
    """Items of a source without order, such as messages of a queue: each is taken once (R8).

    items: 16 bytes each.
    """

    connection: ConnectionId
    items: tuple[bytes, ...]
    MAX: ClassVar[int] = ITEMS_MAX

    def check(self, state: TableState) -> None:
        known = _known(state, self.connection)
        if any(len(item) != ITEM_BYTES for item in self.items):
            raise InvalidError("an item has a name of 16 bytes", connection=self.connection)
        if not self.items or len(set(self.items)) < len(self.items):
            raise InvalidError("a commit takes some items, each once", connection=self.connection)
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
                hint="wait: they are forgotten when the write floor rises",
            )

    def apply(self, state: TableState, moment: Moment) -> None:
        known = connection_of(state, self.connection)
        if known is not None:
            put_items(state, known, self.items, moment.number)


class ForgetItems(msgspec.Struct, frozen=True, array_like=True, tag="forget_items"):
    """Items that entries below a number took can not come again, and are forgotten (R8)."""

    below: TransactionNumber

    def check(self, state: TableState) -> None:
        if self.below > state.head().floor:
            raise InvalidError("items are forgotten below the write floor", below=self.below)

    def apply(self, state: TableState, moment: Moment) -> None:
        forget_items(state, self.below)


class RecordGap(msgspec.Struct, frozen=True, array_like=True, tag="gap"):
    """A source no longer had records that were never taken; its reader goes on behind them.

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
        _check_version(state, self.connection, self.version)
        position_name(self.connection, self.source_split)
        if len(self.reason.encode("utf-8", "replace")) > REASON_BYTES_MAX:
            raise InvalidError("a reason is too long", bytes_max=REASON_BYTES_MAX)

    def apply(self, state: TableState, moment: Moment) -> None:
        known = connection_of(state, self.connection)
        if known is not None:
            gap = Gap(self.source_split, self.first, self.end, moment.number, self.reason)
            put_gap(state, known, gap)


class ForgetConnection(msgspec.Struct, frozen=True, array_like=True, tag="forget_connection"):
    """A connection ended: its positions, its ledger and its items are forgotten, its rows stay."""

    connection: ConnectionId

    def check(self, state: TableState) -> None:
        _known(state, self.connection)

    def apply(self, state: TableState, moment: Moment) -> None:
        known = connection_of(state, self.connection)
        if known is not None:
            forget_connection(state, known)


FeedChange = Define | Count | TakeItems | ForgetItems | RecordGap | ForgetConnection


def check_ledger(
    changes: Iterable[object], *, moved: Iterable[str], rows: int, merges_rows: bool
) -> None:
    """Refuse a commit whose ledger is not that of its rows, or that takes records from nowhere.

    changes: all of the commit. moved: names of the positions that it moves. rows: of the files
    that it adds. merges_rows: whether the table makes one row of several.

    Raises:
        InvalidError: records are counted that no position and no item accounts for, or other rows
            are counted than are added.
    """
    counts, names, taken = list[Count](), set(moved), set[str]()
    for change in changes:
        match change:
            case Count():
                counts.append(change)
            case TakeItems():
                taken.add(change.connection)
            case RecordGap() if _name(change) not in names:
                raise InvalidError("a gap is recorded with the position behind it")
            case _:
                pass
    for count in counts:
        if _name(count) not in names and count.connection not in taken:
            hint = "commit the position, or the items, with the rows that came of them"
            raise InvalidError(
                "records are counted that were taken from nowhere", source=_name(count), hint=hint
            )
    if len({_name(count) for count in counts}) < len(counts):
        raise InvalidError("a commit counts the records of a source split once")
    stored = sum(count.tally.stored for count in counts)
    if counts and (stored < rows or (stored > rows and not merges_rows)):
        hint = "count each record that was stored, and no other"
        raise InvalidError(
            "the ledger is not that of the rows", stored=stored, rows=rows, hint=hint
        )


def _name(change: Count | RecordGap) -> str:
    return position_name(change.connection, change.source_split)


def _known(state: TableState, id_: ConnectionId) -> Connection:
    known = connection_of(state, id_)
    if known is None:
        raise DefinitionMovedError(
            "the table does not know this connection",
            connection=id_,
            hint="it was ended, or never begun: look at its definition",
        )
    return known


def _check_version(state: TableState, id_: ConnectionId, version: int) -> None:
    known = _known(state, id_)
    if version < known.version:
        raise _moved(known, version)
    if version > known.version:
        hint = "define it first, in this commit or an earlier one"
        raise InvalidError("a definition that the table does not know", version=version, hint=hint)


def _moved(known: Connection, version: int) -> DefinitionMovedError:
    return DefinitionMovedError(
        "the connection has a newer definition",
        connection=known.id,
        version=version,
        newest=known.version,
        hint="make the rows anew, as the newer one says",
    )
