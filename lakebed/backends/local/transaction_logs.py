"""Logs in SQLite, one file per table. A commit is one INSERT: one sync of the write-ahead file."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from weakref import WeakValueDictionary

from lakebed.backends.local.durable_folder import sync_folder
from lakebed.backends.local.sqlite_database import SqliteDatabase, damaged
from lakebed.errors import (
    CorruptError,
    InvalidError,
    LogConflictError,
    LogRolledBackError,
    LogTruncatedError,
)
from lakebed.model.disk_errors import translated
from lakebed.model.names import (
    EntryChecksum,
    Micros,
    TableId,
    TransactionNumber,
    entry_checksum,
    table_id,
)
from lakebed.model.open_limit import OpenLimit
from lakebed.ports.clock import Clock

PAGE_BYTES = 4 << 20
PAGE_ENTRIES = 1_000
"""A page of entries ends after so many bytes or entries, whatever comes first."""

OPEN_LOGS_MAX = 64
"""Each open log holds up to three file descriptors; the longest unused one is closed."""
KNOWN_LOGS_MAX = 1_024
"""Logs that are kept while unused: a KiB each, their files closed or open."""

SUFFIX = ".sqlite"
PARTS = ("-wal", "-shm", "")
"""Suffixes of a log's files, in the order of their removal: none is read without the last."""
_SCHEMA = """
CREATE TABLE entry (number INTEGER PRIMARY KEY, body BLOB NOT NULL) STRICT;
CREATE TABLE truncated (below INTEGER NOT NULL) STRICT;
INSERT INTO truncated VALUES (1)"""
_APPEND = """INSERT INTO entry SELECT ?1, ?2 FROM truncated WHERE (?1 = below OR (?1 > below AND
EXISTS (SELECT 1 FROM entry WHERE number = ?1 - 1 AND (?3 IS NULL OR checksum(body) = ?3))))
AND NOT EXISTS (SELECT 1 FROM entry WHERE number > ?1)"""
_TAKEN = """SELECT EXISTS (SELECT 1 FROM entry WHERE number = ?1) OR ?1 < below FROM truncated"""
_LAST = "SELECT number, body FROM entry ORDER BY number DESC LIMIT 1"
_READ = "SELECT number, body FROM entry WHERE number >= ? ORDER BY number LIMIT ?"
_NEWEST = "SELECT max(below - 1, coalesce((SELECT max(number) FROM entry), 0)) FROM truncated"


class SqliteTransactionLog:
    """One table's log. Numbers below `truncated.below` have no row and stay taken."""

    def __init__(
        self, path: Path, clock: Clock, on_use: Callable[[SqliteDatabase], None] | None = None
    ) -> None:
        functions = {"checksum": entry_checksum}
        self._database = SqliteDatabase(path, _SCHEMA, on_use=on_use, functions=functions)
        self._clock = clock

    def append(
        self, number: TransactionNumber, body: bytes, after: EntryChecksum | None = None
    ) -> None:
        """Write entry `number` if it is free, behind the entry before it, durably. Only entry 1
        makes a file."""
        if number < 1:
            raise AssertionError(f"entries are numbered from 1, got {number}")
        if number > 1 and not self._database.exists():
            raise LogRolledBackError(number - 1, log_ends=0, log=self._database.path)
        with self._database.writing_once() as execute:
            try:
                written = execute(_APPEND, (number, body, after)).rowcount
            except sqlite3.IntegrityError:
                raise LogConflictError(number) from None
        if written:
            return
        with self._database.reading() as connection:
            (taken,) = connection.execute(_TAKEN, (number,)).fetchone()
        if taken:
            raise LogConflictError(number)
        raise LogRolledBackError(number - 1, log_ends=self.newest())

    def read_after(
        self, number: TransactionNumber, checksum: EntryChecksum | None = None
    ) -> Iterator[tuple[TransactionNumber, bytes]]:
        """Yield entries from `number + 1` on, up to the first gap. No lock is held meanwhile."""
        while page := self._page(number, checksum):
            for entry in page:
                yield entry
                number, checksum = entry[0], None

    def read_scattered(self, after: TransactionNumber) -> Iterator[tuple[TransactionNumber, bytes]]:
        """Yield every entry above a number."""
        while self._database.exists():
            with self._database.reading() as connection:
                found = connection.execute(_READ, (after + 1, 1)).fetchone()
            if found is None:
                return
            yield found
            after = found[0]

    def newest(self) -> TransactionNumber:
        """Return the greatest number that is taken."""
        if not self._database.exists():
            return TransactionNumber(0)
        with self._database.reading() as connection:
            return TransactionNumber(connection.execute(_NEWEST).fetchone()[0])

    def truncate(self, below: TransactionNumber) -> None:
        """Delete bodies below; the newest stays, and no number becomes free."""
        if not self._database.exists():
            return
        with self._database.writing() as connection:
            (newest,) = connection.execute("SELECT coalesce(max(number), 1) FROM entry").fetchone()
            oldest = min(below, newest)
            connection.execute("UPDATE truncated SET below = ?1 WHERE below < ?1", (oldest,))
            connection.execute("DELETE FROM entry WHERE number < ?", (oldest,))

    def resume(self, number: TransactionNumber, body: bytes, *, newest: TransactionNumber) -> None:
        """Begin the log anew with entry `number`, in one transaction of SQLite."""
        if number <= newest:
            raise AssertionError(f"a log goes on behind {newest}, got {number}")
        if newest and not self._database.exists():
            raise LogConflictError(number)
        with self._database.writing() as connection:
            (found,) = connection.execute(_NEWEST).fetchone()
            if found != newest:
                raise LogConflictError(number)
            connection.execute("UPDATE truncated SET below = ?", (number,))
            connection.execute("DELETE FROM entry")
            connection.execute("INSERT INTO entry VALUES (?, ?)", (number, body))

    def last(self) -> tuple[TransactionNumber, bytes] | None:
        """Return the newest entry; None: the log was never written."""
        if not self._database.exists():
            return None
        with self._database.reading() as connection:
            found = connection.execute(_LAST).fetchone()
        return None if found is None else (TransactionNumber(found[0]), found[1])

    def extend(
        self, entries: Iterable[tuple[TransactionNumber, bytes]], *, oldest: TransactionNumber
    ) -> None:
        """Add consecutive entries behind the newest, all or none; entries below `oldest` go, and
        their numbers stay taken. For a log that is a copy: no process appends to it.

        Raises:
            CorruptError: the numbers are not consecutive; nothing was changed.
        """
        with self._database.writing() as connection:
            connection.execute("UPDATE truncated SET below = ?1 WHERE below < ?1", (oldest,))
            connection.execute("DELETE FROM entry WHERE number < ?", (oldest,))
            newest = connection.execute(_LAST).fetchone()
            expected = oldest if newest is None else newest[0] + 1
            for number, body in entries:
                if number != expected:
                    raise CorruptError("entries are not consecutive", got=number, wanted=expected)
                connection.execute("INSERT INTO entry VALUES (?, ?)", (number, body))
                expected += 1

    def store_time(self) -> Micros:
        """Return this machine's clock: it is the store's."""
        return self._clock.now()

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        self._database.close()

    def _page(
        self, after: TransactionNumber, checksum: EntryChecksum | None
    ) -> list[tuple[TransactionNumber, bytes]]:
        """Return consecutive entries. Raises: LogTruncatedError, LogRolledBackError."""
        if not self._database.exists():
            if after:
                raise LogRolledBackError(after, log_ends=0, log=self._database.path)
            return []
        page: list[tuple[TransactionNumber, bytes]] = []
        is_behind = after == 0  # whether entry `after` is there
        size = 0
        with self._database.reading() as connection:
            with closing(connection.execute(_READ, (after, PAGE_ENTRIES + 1))) as rows:
                for number, body in rows:
                    if number == after:
                        is_behind = checksum is None or entry_checksum(body) == checksum
                        continue
                    if number != after + len(page) + 1:
                        break
                    page.append((number, body))
                    size += len(body)
                    if size >= PAGE_BYTES:
                        break
            if not page or not is_behind:
                # Entries that are not there were never written, or truncated: the mark only rises.
                (below,) = connection.execute("SELECT below FROM truncated").fetchone()
                if type(below) is not int or below < 1:
                    raise damaged(self._database.path, "its mark of truncation is none")
                if after + 1 < below:
                    raise LogTruncatedError(below)
                if not is_behind and after >= below:
                    raise LogRolledBackError(after, log_ends=self.newest())
        return page


class SqliteTransactionLogs:
    """The logs of all tables, in one folder. clock: this machine's. open_max: files at once; a log
    that was closed opens its file again when it is used."""

    def __init__(
        self, root: str | os.PathLike[str], clock: Clock, *, open_max: int = OPEN_LOGS_MAX
    ) -> None:
        self._root = Path(root).absolute()
        self._clock = clock
        self._lock = threading.Lock()
        # One log a table, as long as it is in use: each has a connection of its own.
        self._logs: WeakValueDictionary[TableId, SqliteTransactionLog] = WeakValueDictionary()
        self._known: OpenLimit[SqliteTransactionLog] = OpenLimit(KNOWN_LOGS_MAX, lambda _: True)
        self._open = OpenLimit(open_max, SqliteDatabase.close_if_unused)

    def open(self, table: TableId) -> SqliteTransactionLog:
        """Return a table's log. Raises: InvalidError for what no table is called."""
        table = table_id(table)
        with self._lock:
            log = self._logs.get(table)
            if log is None:
                path = self._root / (table + SUFFIX)
                log = self._logs[table] = SqliteTransactionLog(path, self._clock, self._open.used)
        self._known.used(log)
        return log

    def tables(self) -> list[TableId]:
        """Return every table that has a log, in order."""
        return sorted(id_ for name in self._names() if (id_ := _table_of(name)) is not None)

    def strays(self) -> list[str]:
        """Return the names of what lies among the logs and is part of none, in order."""
        return sorted(
            name
            for name in self._names()
            if not name.startswith(".")  # a log on its way into the folder
            and not any(_table_of(name.removesuffix(part)) for part in PARTS)
        )

    def remove(self, table: TableId) -> None:
        """Remove a log's files."""
        with self._lock:
            log = self._logs.pop(table, None)
        if log is not None:
            log.close()
        path = self._root / (table_id(table) + SUFFIX)
        with translated("removing a log"):
            for part in PARTS:
                path.with_name(path.name + part).unlink(missing_ok=True)
            sync_folder(self._root)

    def close(self) -> None:
        """Close all files."""
        with self._lock:
            for log in list(self._logs.values()):
                log.close()

    def _names(self) -> list[str]:
        with translated("listing logs"):
            return [file.name for file in self._root.iterdir()]


def _table_of(name: str) -> TableId | None:
    """Return the table whose log a file of this name is; None: it is none."""
    try:
        return table_id(name.removesuffix(SUFFIX)) if name.endswith(SUFFIX) else None
    except InvalidError:
        return None
