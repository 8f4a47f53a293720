"""What a disk or a hand does to the cache of a machine's state while the machine has it closed.

At its next use the state must prove itself, or be set aside and made anew from snapshot and log
(H37). Rows are changed as SQLite allows it, without the triggers that keep the sums.
"""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing, suppress

from lakebed.errors import CacheDamagedError
from lakebed.statestore.table_state import sums
from lakebed.statestore.table_state.database_errors import DATABASE_ERRORS
from lakebed.statestore.table_state.layout import PAGE_BYTES
from lakebed.statestore.table_state.state import TableState
from tests.simulation.faults.weather import Mishap
from tests.simulation.new_state import connection_to, state_in

HEADER_BYTES = 100
"""Of the database, where only its format is looked at: a world has no cache files to open."""
ROWS: Mapping[str, tuple[str, str]] = {
    "commits": ("id", "number"),
    "file_references": ("partition, file", "rows"),
    "garbage": ("file", "number"),
    "entry_times": ("number", "at"),
    "jobs": ("key", "at"),
    "pins": ("id", "until"),
}
"""Tables whose rows are lost or changed: the key of a row, and the column that is changed."""
PROVEN_ROWS_MAX = sums.PROVEN_ROWS_MAX


def make_states_large(*, large: bool) -> None:
    """Let every state be proven as one with many rows is, or as it is."""
    sums.PROVEN_ROWS_MAX = 0 if large else PROVEN_ROWS_MAX


def opened(content: bytes) -> TableState | None:
    """Return the state in a database; None: it is too damaged to be opened."""
    try:
        state = state_in(content)
        state.connection.execute("SELECT count(*) FROM sqlite_master")
    except DATABASE_ERRORS:
        return None
    return state


def proves_itself(state: TableState) -> bool:
    """Whether a state holds the rows that were written; else it is set aside when that matters."""
    try:
        with state.reading():
            state.prove()
            return True
    except CacheDamagedError:
        return False


def change_byte(content: bytes, rng: random.Random) -> bytes:
    """Return a database with another value of a byte that is not zero."""
    changed = bytearray(content)
    at = HEADER_BYTES
    while not changed[at]:
        at = rng.randrange(HEADER_BYTES, len(changed))
    changed[at] ^= rng.randrange(1, 256)
    return bytes(changed)


def zero_page(content: bytes, rng: random.Random) -> bytes:
    """Return a database of which a page has nothing but zeros."""
    start = PAGE_BYTES * rng.randrange(len(content) // PAGE_BYTES)
    return content[:start] + bytes(PAGE_BYTES) + content[start + PAGE_BYTES :]


def cut(content: bytes, rng: random.Random) -> bytes:
    """Return the first pages of a database."""
    return content[: PAGE_BYTES * rng.randrange(1, len(content) // PAGE_BYTES)]


def lose_row(content: bytes, rng: random.Random) -> bytes:
    """Return a database without one of its rows."""
    return _after(content, rng, "DELETE FROM {table} WHERE ({key}) = ({row})")


def change_row(content: bytes, rng: random.Random) -> bytes:
    """Return a database in which one row has another number or time."""
    update = "UPDATE {table} SET {column} = {column} + 1 WHERE ({key}) = ({row})"
    return _after(content, rng, update)


def _after(content: bytes, rng: random.Random, statement: str) -> bytes:
    """Return a database after a statement on one row of some table that has any."""
    with closing(connection_to(content)) as connection, suppress(sqlite3.DatabaseError):
        for table in rng.sample(list(ROWS), len(ROWS)):
            key, column = ROWS[table]
            select = f"SELECT {key} FROM {table} ORDER BY {key}"
            if rows := connection.execute(select).fetchall():
                row = rng.choice(rows)
                places = ", ".join("?" * len(row))
                done = statement.format(table=table, key=key, column=column, row=places)
                connection.execute(done, row)
                return bytes(connection.serialize())
    return content  # it has no rows, or was damaged before


DAMAGES: Mapping[Mishap, Callable[[bytes, random.Random], bytes]] = {
    Mishap.CACHE_BYTE_CHANGED: change_byte,
    Mishap.CACHE_PAGE_ZEROED: zero_page,
    Mishap.CACHE_CUT: cut,
    Mishap.CACHE_ROW_LOST: lose_row,
    Mishap.CACHE_ROW_CHANGED: change_row,
}
