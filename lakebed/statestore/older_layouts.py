"""Snapshots in the layout of an older release, for lakes that must not have a newer one yet."""

from __future__ import annotations

import sqlite3

from lakebed.errors import FormatGateError
from lakebed.statestore.table_state.layout import DIGESTED_WITH_ROWS, FED
from lakebed.statestore.table_state.sums import COUNTS, KNOWN_ROWS

TABLES = (
    "head",
    "commits",
    "entry_times",
    "partitions",
    "file_references",
    "jobs",
    "garbage",
    "pins",
    "positions",
)
"""Tables of layout 1. Later layouts add tables and change none of these."""

SUMS = ("row_sums", "partition_sums")
"""Tables of layout 2 and later that hold sums: the first has a row for each of the others."""

_FEEDS = ("connections", "tallies", "items", "gaps", *FED)
ADDED = {2: ("last_entry",), 3: ("last_entry", *_FEEDS)}
"""Tables that a layout added, beside its sums."""


def write_down(connection: sqlite3.Connection, layout: int) -> None:
    """Turn a copy of a state into one of an older layout, if no more is allowed.

    What later layouts added is left out: it is made anew, as far as it must be, by who opens the
    snapshot. The digest stays: what is digested holds no rows yet.

    Raises:
        FormatGateError: it holds rows that the older layout has no table for.
    """
    (found,) = connection.execute("PRAGMA user_version").fetchone()
    if found <= layout:
        return
    if layout not in {1, *ADDED}:
        raise AssertionError(f"no such older layout: {layout}")
    kept = {*TABLES, *(SUMS if layout > 1 else ()), *ADDED.get(layout, ())}
    query = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
    for (name,) in connection.execute(query).fetchall():
        if name not in kept:
            exists = f'SELECT EXISTS(SELECT 1 FROM "{name}")'  # noqa: S608 - a name of the layout
            if name in DIGESTED_WITH_ROWS and connection.execute(exists).fetchone()[0]:
                raise FormatGateError(
                    "the lake does not allow this snapshot", holds=name, to=layout
                )
            connection.execute(f'DROP TABLE "{name}"')
            if layout > 1:
                connection.execute("DELETE FROM row_sums WHERE name = ?", (name,))
    if layout > 1:
        connection.execute("DELETE FROM row_sums WHERE name = ?", (KNOWN_ROWS,))
        for column in COUNTS:
            connection.execute(f"ALTER TABLE partition_sums DROP COLUMN {column}")
    connection.execute(f"PRAGMA user_version={layout}")
