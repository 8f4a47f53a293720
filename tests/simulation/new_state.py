"""Empty states by the thousand: laid out once, then copied."""

from __future__ import annotations

import functools
import sqlite3

from lakebed.statestore.table_state.layout import open_memory
from lakebed.statestore.table_state.state import TableState


@functools.cache
def _laid_out() -> bytes:
    connection = open_memory()
    content = connection.serialize()
    connection.close()
    return content


def new_state() -> TableState:
    """Return a new, empty state in memory."""
    return state_in(_laid_out())


def state_in(database: bytes) -> TableState:
    """Return the state in the bytes of a database."""
    connection = connection_to(database)
    connection.execute("PRAGMA journal_mode=MEMORY")
    return TableState(connection)


def connection_to(database: bytes) -> sqlite3.Connection:
    """Return a connection to a copy of a database."""
    connection = sqlite3.connect(
        ":memory:", isolation_level=None, check_same_thread=False, cached_statements=256
    )
    connection.deserialize(database)
    return connection
