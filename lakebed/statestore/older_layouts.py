"""Snapshots in the layout of an older release, for lakes that must not have a newer one yet."""

from __future__ import annotations

import sqlite3

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
"""Of layout 1. Later layouts add tables and change none of these."""


def write_down(connection: sqlite3.Connection, layout: int) -> None:
    """Turn a copy of a state into one of layout 1, if no more is allowed.

    What later layouts added is left out: it is made anew, as far as it must be, by who opens the
    snapshot. The digest stays, because entries that fill what is digested are not allowed either.
    """
    (found,) = connection.execute("PRAGMA user_version").fetchone()
    if found <= layout:
        return
    if layout != 1:
        raise AssertionError(f"there is one older layout, got {layout}")
    query = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
    for (name,) in connection.execute(query).fetchall():
        if name not in TABLES:
            connection.execute(f'DROP TABLE "{name}"')
    connection.execute("PRAGMA user_version=1")
