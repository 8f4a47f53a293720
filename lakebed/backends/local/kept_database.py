"""A SQLite file whose rows are kept nowhere else.

So each row carries its checksum, and beside the file lies a mark that tells a file that is gone
from one that was never made.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from lakebed.backends.local.sqlite_database import PROVEN_BYTES_MAX, SqliteDatabase, damaged
from lakebed.errors import CorruptError
from lakebed.model.disk_errors import translated


class KeptDatabase:
    """A database with its mark. Rows of a small file are proven when it is opened.

    sums: what the column `checksum` of a row is to be, in SQL, by the name of its table.
    what: it holds, in words.
    instead: what to do if it is gone and there is no copy of it.
    """

    def __init__(
        self, database: SqliteDatabase, sums: Mapping[str, str], *, what: str, instead: str
    ) -> None:
        self.path = database.path
        self._database = database
        self._sums = sums
        self._what = what
        self._instead = instead
        self._mark = database.path.with_suffix(".made")
        self._proven: sqlite3.Connection | None = None

    def exists(self) -> bool:
        """Return whether there is a file. Raises: CorruptError: there was one, and it is gone."""
        if self._database.exists():
            return True
        if self._mark.exists():
            if self._database.exists():  # another process has just made both
                return True
            hint = f"restore it; or delete {self._mark.name} beside it, {self._instead}"
            raise CorruptError(f"the file of {self._what} is gone", path=self.path, hint=hint)
        return False

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Give the connection to a statement that changes nothing. Makes the file if there never
        was one. Raises: CorruptError: it is gone, or a row contradicts its checksum."""
        self.exists()
        with self._database.reading() as connection:
            self._prove(connection)
            yield connection

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Give the connection to statements that happen all or not at all; else as `reading`."""
        self.exists()
        with self._database.writing() as connection:
            self._prove(connection)
            yield connection

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        self._database.close()

    def _prove(self, connection: sqlite3.Connection) -> None:
        """Mark a file that was just opened as made, and prove the rows of a small one: a row whose
        key has changed is not among those that are asked for."""
        if connection is self._proven:
            return
        with translated(f"marking a file of {self._what}"):
            self._mark.touch()
            is_small = self.path.stat().st_size <= PROVEN_BYTES_MAX
        for name, checksum in self._sums.items() if is_small else ():
            where = f"checksum IS NOT {checksum} LIMIT 1"
            changed = f"SELECT 1 FROM {name} WHERE {where}"  # noqa: S608 - constant texts
            if connection.execute(changed).fetchone():
                raise damaged(self.path, f"a row of `{name}` contradicts its checksum")
        self._proven = connection
