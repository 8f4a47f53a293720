"""The number of its format in a SQLite file, as a disk changes it, and as a newer release would."""

import sqlite3
from contextlib import closing
from pathlib import Path

NUMBER_AT = 60
"""Where a SQLite file has its `user_version`: four bytes that no sum covers."""


def number_in(path: Path) -> int:
    """Return the number that a closed file says."""
    return int.from_bytes(path.read_bytes()[NUMBER_AT:][:4], signed=True)


def change_number(path: Path, number: int) -> None:
    """Change the number of a closed file, and nothing else."""
    with path.open("r+b") as file:
        file.seek(NUMBER_AT)
        file.write(number.to_bytes(4, signed=True))


def make_newer(path: Path) -> None:
    """Turn a closed file into one of a format of a later release: a column more, the next
    number."""
    with closing(sqlite3.connect(path)) as connection, connection:
        query = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        for (name,) in connection.execute(query).fetchall():
            connection.execute(f"ALTER TABLE {name} ADD COLUMN newer INTEGER")
        (number,) = connection.execute("PRAGMA user_version").fetchone()
        connection.execute(f"PRAGMA user_version={number + 1}")
