"""Holds what a state knows of the feeds that fill its table: connections, what became of their
records, which items were taken, and what their sources no longer had.

Positions themselves lie in `positions`, under the names that `model.positions` gives them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import reduce

import msgspec

from lakebed.model.feeds.endings import ENDED_VERSION
from lakebed.model.feeds.positions import Position, decode_position
from lakebed.model.feeds.tallies import Tally
from lakebed.model.names import ITEM_BYTES, ConnectionId, Micros, TransactionNumber
from lakebed.statestore.table_state.state import ENTRY_TIME_SPACING, TableState
from lakebed.statestore.table_state.time_records import OWN_NAMES

HOUR = 3_600_000_000
"""Microseconds."""
DAY_HOURS = 24
HOURS_KEPT = 3 * DAY_HOURS
"""Hours after which a tally's hours become days."""
DAYS_KEPT = 100
"""Days after which a tally's days become one row, of hour 0."""
GAPS_KEPT = 1_000
"""Most gaps of a connection that are kept: the newest."""

_TALLIES = (
    "SELECT name, hour, read, stored, filtered, quarantined, deduplicated, sampled_out, discarded,"
    " bytes FROM tallies WHERE connection = ?"
)

_FORGET = (
    "DELETE FROM tallies WHERE connection = ?",
    "DELETE FROM items WHERE connection = ?",
    "DELETE FROM gaps WHERE connection = ?",
    "DELETE FROM errors_in_row WHERE connection = ?",
)


class Connection(msgspec.Struct, frozen=True):
    """A connection that leads a feed into the table.

    key: of its rows in other tables of the state.
    version: the newest definition that rows were made by.
    number: of the entry that made it known.
    """

    id: ConnectionId
    key: int
    version: int
    number: TransactionNumber

    @property
    def has_ended(self) -> bool:
        """Return whether its definition was dropped: nothing else is known of it any more."""
        return self.version >= ENDED_VERSION


class Gap(msgspec.Struct, frozen=True):
    """Records that a source no longer had when they were asked for.

    first, end: the position that was wanted, and the first one that there was.
    number: of the entry that went on behind the gap.
    """

    source_split: str
    first: bytes
    end: bytes
    number: TransactionNumber
    reason: str


def connection_of(state: TableState, id_: ConnectionId) -> Connection | None:
    """Return what is known of a connection."""
    state.prove_once("connections")
    query = "SELECT id, key, version, number FROM connections WHERE id = ?"
    row = state.connection.execute(query, (id_,)).fetchone()
    return Connection(*row) if row else None


def connections(state: TableState) -> list[Connection]:
    """Return all connections, by their ids; those that have ended, too."""
    query = "SELECT id, key, version, number FROM connections ORDER BY id"
    return [Connection(*row) for row in state.connection.execute(query)]


def living_connections(state: TableState) -> list[Connection]:
    """Return the connections whose definitions were not dropped, by their ids."""
    return [known for known in connections(state) if not known.has_ended]


def positions_of(state: TableState, id_: ConnectionId) -> Iterator[tuple[str, Position, int]]:
    """Yield the source splits of a connection, each with its position and the number of its owner.

    Raises:
        CorruptError, NewerFormatError: a position cannot be read.
    """
    query = "SELECT name, value, owner FROM positions WHERE name > ? AND name < ? ORDER BY name"
    for name, value, owner in state.connection.execute(query, _names_of(id_)):
        yield name[len(id_) + 1 :], decode_position(value), owner


def all_positions(state: TableState) -> Iterator[tuple[str, bytes]]:
    """Yield the names of all positions of sources, with their bytes."""
    query = "SELECT name, value FROM positions WHERE substr(name, 1, ?) <> ? ORDER BY name"
    yield from state.connection.execute(query, (len(OWN_NAMES), OWN_NAMES))


def wrong_feed_records(state: TableState) -> Iterator[str]:
    """Yield what does not add up, or belongs to no connection, in a few words each."""
    rows = state.connection.execute(
        "SELECT 'tally of ' || name FROM tallies WHERE read <> stored + filtered + quarantined"
        " + deduplicated + sampled_out + discarded"
        " UNION ALL SELECT 'tally of ' || name FROM tallies"
        " WHERE connection NOT IN (SELECT key FROM connections)"
        " UNION ALL SELECT 'gap in ' || name FROM gaps"
        " WHERE connection NOT IN (SELECT key FROM connections)"
        " UNION ALL SELECT count(*) || ' items' FROM items"
        " WHERE connection NOT IN (SELECT key FROM connections) GROUP BY connection"
        " UNION ALL SELECT 'errors in ' || name FROM errors_in_row"
        " WHERE errors < 1 OR connection NOT IN (SELECT key FROM connections)"
    )
    yield from (what for (what,) in rows)


def ledger_of(state: TableState, connection: Connection) -> Iterator[tuple[str, Micros, Tally]]:
    """Yield what became of a connection's records: source split, the log time with which an hour
    or a day begins, or 0 for all that is older, and their tally; by source split and time."""
    rows = state.connection.execute(f"{_TALLIES} ORDER BY name, hour", (connection.key,))
    for name, hour, *sums in rows:
        yield name, Micros(hour * HOUR), Tally(*sums)


def tally_of_hour(
    state: TableState, connection: Connection, at: Micros, split: str | None = None
) -> Tally:
    """Return what became of a connection's records in the hour of a moment of log time.

    split: of this source split; None: of all.
    """
    query, values = f"{_TALLIES} AND hour = ?", (connection.key, at // HOUR)
    if split is None:
        rows = state.connection.execute(query, values)
    else:
        rows = state.connection.execute(f"{query} AND name = ?", (*values, split))
    return reduce(Tally.plus, (Tally(*sums) for _, _, *sums in rows), Tally())


def tally_of_split(state: TableState, connection: Connection, split: str) -> Tally:
    """Return what became of all records of a source split, as far as its ledger says."""
    rows = state.connection.execute(f"{_TALLIES} AND name = ?", (connection.key, split))
    return reduce(Tally.plus, (Tally(*sums) for _, _, *sums in rows), Tally())


def gaps_of(state: TableState, connection: Connection) -> list[Gap]:
    """Return the newest gaps of a connection, oldest first."""
    query = (
        "SELECT name, first, end, number, reason FROM gaps WHERE connection = ?"
        " ORDER BY number, name"
    )
    return [Gap(*row) for row in state.connection.execute(query, (connection.key,))]


def taken_items(state: TableState, connection: Connection, items: Iterable[bytes]) -> list[bytes]:
    """Return which of some items are in the table already."""
    state.prove_once("items")
    query = "SELECT 1 FROM items WHERE connection = ? AND item = ?"
    execute = state.connection.execute
    return [item for item in items if execute(query, (connection.key, item)).fetchone()]


def taken_items_of(
    state: TableState, connection: Connection, prefix: bytes, limit: int
) -> list[bytes]:
    """Return items in the table that begin with some bytes, at most `limit`."""
    state.prove_once("items")
    query = "SELECT item FROM items WHERE connection = ? AND item >= ? AND item <= ? LIMIT ?"
    last = prefix + b"\xff" * (ITEM_BYTES - len(prefix))
    rows = state.connection.execute(query, (connection.key, prefix, last, limit))
    return [bytes(item) for (item,) in rows]


def has_room_for(state: TableState, connection: Connection, items: int, items_max: int) -> bool:
    """Return whether a connection may have so many items more. Those of all connections are known
    at once, its own are counted when they may be too many."""
    execute = state.connection.execute
    (of_all,) = execute("SELECT rows FROM row_sums WHERE name = 'items'").fetchone()
    if of_all + items <= items_max:
        return True
    query = "SELECT count(*) FROM items WHERE connection = ?"
    (own,) = execute(query, (connection.key,)).fetchone()
    return bool(own + items <= items_max)


def number_before(state: TableState, at: Micros) -> int:
    """Return the greatest number whose entry was surely written before a log time: at the latest a
    minute after it was. Of entries in one minute only the first one's time is known, and below the
    oldest whose time is known, none is: 0."""
    query = (
        "SELECT min(number), min(number) = (SELECT min(number) FROM entry_times)"
        " FROM entry_times WHERE at > ?"
    )
    first, is_oldest = state.connection.execute(query, (at - ENTRY_TIME_SPACING,)).fetchone()
    if first is None:
        return int(state.head().number)
    return 0 if is_oldest else int(first - 1)


def has_items_upto(state: TableState, connection: Connection, number: int) -> bool:
    """Return whether items of a connection are remembered that entries up to a number took."""
    query = "SELECT EXISTS(SELECT 1 FROM items WHERE connection = ? AND number <= ?)"
    return bool(state.connection.execute(query, (connection.key, number)).fetchone()[0])


def newest_taken_since(state: TableState, connection: Connection, count: int) -> Micros | None:
    """Return a log time since which a connection took its newest items, at least so many. None: it
    has no more than these, or it is not known any longer when it took them."""
    query = "SELECT number FROM items WHERE connection = ? ORDER BY number DESC LIMIT 1 OFFSET ?"
    row = state.connection.execute(query, (connection.key, count)).fetchone()
    if row is None:
        return None
    query = "SELECT max(at) FROM entry_times WHERE number <= ?"
    (at,) = state.connection.execute(query, row).fetchone()
    return None if at is None else Micros(at)


def errors_in_row(state: TableState, connection: Connection, source_split: str) -> int:
    """Return of how many last records of a source split no row could be made."""
    state.prove_once("errors_in_row")
    query = "SELECT errors FROM errors_in_row WHERE connection = ? AND name = ?"
    row = state.connection.execute(query, (connection.key, source_split)).fetchone()
    return int(row[0]) if row else 0


def errors_in_rows(state: TableState, connection: Connection) -> dict[str, int]:
    """Return the source splits whose last records are errors, with how many they are."""
    query = "SELECT name, errors FROM errors_in_row WHERE connection = ? ORDER BY name"
    return dict(state.connection.execute(query, (connection.key,)).fetchall())


def put_errors_in_row(
    state: TableState, connection: Connection, source_split: str, errors: int
) -> None:
    """Remember how many last records of a source split are errors; none need no row."""
    where = (connection.key, source_split)
    if errors:
        state.write("INSERT OR REPLACE INTO errors_in_row VALUES (?, ?, ?)", (*where, errors))
    else:
        state.write("DELETE FROM errors_in_row WHERE connection = ? AND name = ?", where)


def put_connection(
    state: TableState, id_: ConnectionId, version: int, number: TransactionNumber
) -> Connection:
    """Remember a connection, or the newer version of one. Returns what is known of it."""
    state.write(
        "INSERT INTO connections(id, version, number) VALUES (?, ?, ?)"
        " ON CONFLICT(id) DO UPDATE SET version = max(version, excluded.version)",
        (id_, version, number),
    )
    known = connection_of(state, id_)
    assert known is not None, "it was written"
    return known


def add_tally(
    state: TableState, connection: Connection, source_split: str, at: Micros, tally: Tally
) -> None:
    """Add to the hour of a log time. With a new hour, old hours become days and old days one."""
    hour = at // HOUR
    if _add(state, connection.key, source_split, hour, tally):
        _fold(state, connection.key, source_split, hour)


def _add(state: TableState, key: int, name: str, hour: int, tally: Tally) -> bool:
    """Add to a row. Returns whether it is new."""
    where = (key, name, hour)
    query = f"{_TALLIES} AND name = ? AND hour = ?"
    before = state.connection.execute(query, where).fetchone()
    sums = tally if before is None else Tally(*before[2:]).plus(tally)
    state.write(
        "INSERT OR REPLACE INTO tallies VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (*where, *msgspec.structs.astuple(sums)),
    )
    return before is None


def _fold(state: TableState, key: int, name: str, now: int) -> None:
    last_day, last_hour = now - DAYS_KEPT * DAY_HOURS, now - HOURS_KEPT
    query = f"{_TALLIES} AND name = ? AND hour > 0 AND (hour < ? OR (hour < ? AND hour % ? <> 0))"
    old = state.connection.execute(query, (key, name, last_day, last_hour, DAY_HOURS)).fetchall()
    for _, hour, *sums in old:
        state.write(
            "DELETE FROM tallies WHERE connection = ? AND name = ? AND hour = ?", (key, name, hour)
        )
        into = 0 if hour < last_day else hour - hour % DAY_HOURS
        _add(state, key, name, into, Tally(*sums))


def put_items(
    state: TableState, connection: Connection, items: Iterable[bytes], number: int
) -> None:
    """Remember that items are in the table."""
    for item in items:
        state.write("INSERT INTO items VALUES (?, ?, ?)", (connection.key, item, number))


def forget_items(state: TableState, below: int) -> None:
    """Forget the items that entries below a number took."""
    state.write("DELETE FROM items WHERE number < ?", (below,))


def forget_old_items(state: TableState, connection: Connection, upto: int) -> None:
    """Forget the items of a connection that entries up to a number took."""
    state.write("DELETE FROM items WHERE connection = ? AND number <= ?", (connection.key, upto))


def put_gap(state: TableState, connection: Connection, gap: Gap) -> None:
    """Remember a gap, and forget the oldest where there are too many."""
    state.write(
        "INSERT OR REPLACE INTO gaps VALUES (?, ?, ?, ?, ?, ?)",
        (connection.key, gap.source_split, gap.number, gap.first, gap.end, gap.reason),
    )
    state.write(
        "DELETE FROM gaps WHERE connection = ?1 AND (number, name) NOT IN"
        " (SELECT number, name FROM gaps WHERE connection = ?1"
        " ORDER BY number DESC, name DESC LIMIT ?2)",
        (connection.key, GAPS_KEPT),
    )


def forget_taken(state: TableState, connection: Connection) -> None:
    """Forget what a connection has taken: positions, ledger, items, gaps, errors."""
    state.write(
        "DELETE FROM positions WHERE name > ? AND name < ?",
        _names_of(connection.id),
    )
    for statement in _FORGET:
        state.write(statement, (connection.key,))


def forget_connection(state: TableState, connection: Connection) -> None:
    """Forget all that is known of a connection, its positions too."""
    forget_taken(state, connection)
    state.write("DELETE FROM connections WHERE id = ?", (connection.id,))


def _names_of(id_: ConnectionId) -> tuple[str, str]:
    """Return the bounds of the names of a connection's positions."""
    return f"{id_}/", f"{id_}0"  # "0" follows "/"
