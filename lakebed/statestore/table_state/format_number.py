"""The number of its format that a SQLite file says, and the columns that prove it.

The number stands in four bytes of the file's header that no sum covers, and no check of SQLite
looks at. Formats differ in their columns, so a number that the columns contradict was changed by a
disk or a hand, and is not the word of another release.
"""

from __future__ import annotations

import sqlite3


def format_number(connection: sqlite3.Connection) -> int:
    """Return the number that a file says; 0: nothing was written to it yet."""
    (found,) = connection.execute("PRAGMA user_version").fetchone()
    return int(found)


def columns_of(connection: sqlite3.Connection) -> set[bytes]:
    """Return the columns of all tables, as `table.column`; in bytes, for some may be no text."""
    found = connection.execute(
        "SELECT CAST(one.name || '.' || own.name AS BLOB)"
        " FROM sqlite_master one, pragma_table_info(one.name) own"
    )
    return {name for (name,) in found}
