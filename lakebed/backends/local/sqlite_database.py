"""One SQLite file, one connection to it in this process, shared by its threads."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote
from zlib import crc32

import msgspec

from lakebed.backends.local.durable_folder import sync_file, sync_folder
from lakebed.errors import (
    CorruptError,
    DeniedError,
    LakebedError,
    NewerFormatError,
    StorageFullError,
    UnavailableError,
    UnknownOutcomeError,
)
from lakebed.model import disk_errors
from lakebed.model.disk_errors import translated
from lakebed.observe import usage
from lakebed.statestore.table_state.database_lock import begin_writing, execute_alone
from lakebed.statestore.table_state.format_number import columns_of, format_number

PROVEN_BYTES_MAX = 1 << 20
"""A file of at most so many bytes is checked by SQLite when it is opened: about a millisecond."""
_ERRORS = (sqlite3.Error, UnicodeDecodeError)
"""Errors of a database, a damaged one too: SQLite quotes its names, and they may be no text."""
_UNFIT = "user-defined function raised exception"
"""Our functions take every value that we write. SQLite says so when it cannot hand one over."""
LET_WRITE = "let the user who runs this read and write there"
BUSY_SECONDS = 10.0
"""Seconds that a statement waits for other processes before it is refused."""


class SqliteDatabase:
    """A database file that is made, whole or not at all, when it is first used.

    schema: statements that make its tables. format: its number; higher ones are refused. Each
        format changes columns of a table that the one before has: a number that they contradict is
        damage. A table more needs no new format.
    upgrades: statements that turn a file of the format before into one of the next, by the former.
    durable: whether a commit survives power loss; otherwise it survives a crash of the process.
    is_moved: whether each commit of `writing` is moved at once from SQLite's write-ahead file into
        the database. In the former a bit that flips takes everything from there on away, without a
        word; pages and rows of the latter are proven.
    on_use: called with the database whenever it is used, while it is open.
    functions: of one value each, that statements may call by name.
    """

    def __init__(
        self,
        path: Path,
        schema: str,
        *,
        format: int = 1,
        upgrades: Mapping[int, Sequence[str]] | None = None,
        durable: bool = True,
        is_moved: bool = False,
        on_use: Callable[[SqliteDatabase], None] | None = None,
        functions: Mapping[str, Callable[[bytes], bytes]] | None = None,
    ) -> None:
        self.path = path
        self._name = os.fspath(path)  # asking by text costs a third
        self._functions = functions or {}
        self._schema = schema
        self._format = format
        self._upgrades = upgrades or {}
        self._durable = durable
        self._is_moved = is_moved
        self._on_use = on_use
        self._users = 0
        self._process = os.getpid()
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None

    def exists(self) -> bool:
        """Return whether the file is there.

        Raises:
            DeniedError, UnavailableError: that is not known.
        """
        try:
            os.stat(self._name)  # noqa: PTH116  a Path takes three times as long
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            raise disk_errors.meaning_of(error, "looking for a database") from error
        return True

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Give the connection to a statement that changes nothing."""
        usage.count("local_reads")
        with self._using():
            try:
                yield self._open()
            except _ERRORS as error:
                raise self._meaning_of(error, wrote=False) from error

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Give the connection to statements that happen all or not at all."""
        usage.count("local_writes")
        with self._using():
            try:
                connection = self._open()
                begin_writing(connection, seconds_max=BUSY_SECONDS)
                try:
                    yield connection
                    connection.execute("COMMIT")
                    if self._is_moved:  # another process may be reading: then the next one does it
                        with suppress(sqlite3.Error):
                            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                finally:
                    if connection.in_transaction:
                        with suppress(sqlite3.Error):  # the first error is the one to raise
                            connection.execute("ROLLBACK")
            except _ERRORS as error:
                raise self._meaning_of(error, wrote=True) from error

    @contextmanager
    def writing_once(self) -> Iterator[Callable[[str, Sequence[Any]], sqlite3.Cursor]]:
        """Give what runs one statement, which is a transaction of its own: half the price of
        `writing`. A long wait is logged with the holder as there."""
        usage.count("local_writes")
        with self._using():
            try:
                connection = self._open()
                yield partial(execute_alone, connection, seconds_max=BUSY_SECONDS)
            except _ERRORS as error:
                raise self._meaning_of(error, wrote=True) from error

    def close(self) -> None:
        """Close the connection; the next use opens another."""
        with self._lock:
            if self._connection is not None and self._process == os.getpid():
                self._connection.close()
                self._connection = None

    def close_if_unused(self) -> bool:
        """Close the connection, unless it is in use: False, at once."""
        if not self._lock.acquire(blocking=False):
            return False
        try:
            if self._users:  # by this very thread
                return False
            self.close()
            return True
        finally:
            self._lock.release()

    @contextmanager
    def _using(self) -> Iterator[None]:
        with self._lock:
            self._users += 1
            try:
                yield
            finally:
                self._users -= 1

    def _meaning_of(self, error: Exception, *, wrote: bool) -> LakebedError:
        """Return what an error means: what looks like a bug is one only in a sound database."""
        is_doubtful = _is_doubtful(error)
        problem = (_problem(self._connection) or self._lost_column()) if is_doubtful else ""
        if problem or isinstance(error, UnicodeDecodeError):
            return damaged(self.path, problem or error)
        assert isinstance(error, sqlite3.Error), "one of _ERRORS"
        return meaning_of(error, self.path, wrote=wrote)

    def _lost_column(self) -> str:
        """Return what the file's own description of its tables lacks; "": nothing. That text stands
        in a page, and no check of SQLite looks at it."""
        if self._connection is None:
            return ""
        lost = sorted(self._own_columns() - columns_of(self._connection))
        return f"it has no column {lost[0].decode()} any more" if lost else ""

    def _own_columns(self) -> set[bytes]:
        """Return the columns of a file of this format."""
        with closing(sqlite3.connect(":memory:")) as made:
            _add_checksum(made)
            made.executescript(self._schema)
            return columns_of(made)

    def _prove_format(self, connection: sqlite3.Connection) -> None:
        """Raise CorruptError if a number that is not this format's stands beside its columns."""
        own, found = self._own_columns(), columns_of(connection)
        tables = {column.partition(b".")[0] for column in own}
        if {column for column in found if column.partition(b".")[0] in tables} == own:
            said = format_number(connection)
            problem = f"it says format {said}, and has the columns of format {self._format}"
            raise damaged(self.path, problem)

    def _open(self) -> sqlite3.Connection:
        # A connection that a child inherits breaks locks of its parent and corrupts the file (H29).
        if self._process != os.getpid():
            raise AssertionError("opened before a fork: spawn, never fork")
        if self._connection is not None and not self._is_in_place(self._connection):
            self._connection.close()
            self._connection = None
        if self._connection is None:
            if not self.path.exists():
                with translated("making a database"):
                    self._make()
            found = self.path.stat()
            self._connection = self._connected()
            self._file = (found.st_dev, found.st_ino)
        if self._on_use is not None:
            self._on_use(self)
        return self._connection

    def _is_in_place(self, connection: sqlite3.Connection) -> bool:
        """Return whether the path still leads to the file that is open: what is written to one that
        was deleted or replaced is lost with this process."""
        if self._users > 1:  # this thread is in the midst of something
            return True
        try:
            found = os.stat(self._name)  # noqa: PTH116  the same
        except OSError:
            return False
        return self._file == (found.st_dev, found.st_ino)

    def _connected(self) -> sqlite3.Connection:
        connection = _connect(self.path)
        try:
            for name, function in self._functions.items():
                connection.create_function(name, 1, function, deterministic=True)
            connection.execute(f"PRAGMA synchronous={'FULL' if self._durable else 'NORMAL'}")
            connection.execute("PRAGMA fullfsync=ON")
            found = format_number(connection)
            if found < 1:
                raise damaged(self.path, f"it says format {found}")
            if self.path.stat().st_size <= PROVEN_BYTES_MAX and (problem := _problem(connection)):
                raise damaged(self.path, problem)
            if found < self._format:
                self._upgrade(connection)
            elif found > self._format:
                self._prove_format(connection)
                hint = "upgrade this installation"
                raise NewerFormatError("unknown format", path=self.path, format=found, hint=hint)
        except (LakebedError, sqlite3.Error):
            connection.close()
            raise
        return connection

    def _upgrade(self, connection: sqlite3.Connection) -> None:
        """Bring an older file to this format, unless another process has just done so."""
        begin_writing(connection, seconds_max=BUSY_SECONDS)
        found = format_number(connection)
        if found < self._format:
            self._prove_format(connection)
        for before in range(found, self._format):
            for statement in self._upgrades.get(before, ()):
                self._bring(connection, statement, before)
        connection.execute(f"PRAGMA user_version={max(found, self._format)}")
        connection.execute("COMMIT")

    def _bring(self, connection: sqlite3.Connection, statement: str, before: int) -> None:
        """Execute a statement that a file of the format before takes: the number may be damaged."""
        try:
            connection.execute(statement)
        except sqlite3.Error as error:
            if not _is_doubtful(error) or _UNFIT in str(error):
                raise
            raise damaged(self.path, f"it says format {before}, and is not: {error}") from error

    def _make(self) -> None:
        """Make the file under another name and link it, so that no process sees half of it."""
        folder, name = self.path.parent, self.path.name
        new = folder / f".{name}.{os.getpid()}.{threading.get_ident()}.new"
        new.unlink(missing_ok=True)
        try:
            connection = _connect(new, mode="rwc")
            try:
                connection.execute("PRAGMA journal_mode=WAL")
                connection.executescript(
                    f"BEGIN; {self._schema}; PRAGMA user_version={self._format}; COMMIT"
                )
            finally:
                connection.close()
            descriptor = os.open(new, os.O_RDWR)
            try:
                sync_file(descriptor)
            finally:
                os.close(descriptor)
            with suppress(FileExistsError):  # another process was first: its file is as good
                os.link(new, self.path)
            sync_folder(folder)
        finally:
            for suffix in ("", "-wal", "-shm"):
                with suppress(OSError):
                    new.with_name(new.name + suffix).unlink(missing_ok=True)


def damaged(path: Path, problem: object) -> CorruptError:
    """Return the error of a database that does not hold what was written to it."""
    hint = "keep a copy, run `lakebed fsck`, restore it from a backup"
    return CorruptError("the database is damaged", path=path, why=problem, hint=hint)


def row_checksum(*values: object) -> int:
    """Return the CRC-32 of the values of a row; also a function of SQL."""
    return crc32(msgspec.msgpack.encode(values))


def _problem(connection: sqlite3.Connection | None) -> str:
    """Return what SQLite finds wrong with the pages of a database; "": nothing."""
    try:
        found = None if connection is None else connection.execute("PRAGMA integrity_check(1)")
        text = "ok" if found is None else found.fetchone()[0]
    except _ERRORS as error:
        text = str(error)
    return "" if text == "ok" else str(text)


def _is_doubtful(error: Exception) -> bool:
    """Return whether a bug or a damaged database may have raised an error."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    return code in {sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_TOOBIG}


def meaning_of(error: sqlite3.Error, path: Path, *, wrote: bool) -> LakebedError:
    """Return the error of this system that says what to do next. wrote: it was a write."""
    code = getattr(error, "sqlite_errorcode", None)
    if code is None and "decode" in str(error):  # what should be text is none
        return damaged(path, error)
    if _UNFIT in str(error):
        return damaged(path, "a row holds what was never written: text that is none")
    if code is None:
        raise AssertionError(f"SQLite is used wrongly: {error}") from error
    facts: dict[str, Any] = {"path": path, "why": str(error)}
    was_cut = code == sqlite3.SQLITE_IOERR_SHORT_READ and not wrote  # while it is open
    match sqlite3.SQLITE_CORRUPT if was_cut else code & 0xFF:
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return UnavailableError("the database is busy", **facts)
        case sqlite3.SQLITE_FULL:
            hint = "free space, then try again"
            return StorageFullError("the disk is full", hint=hint, **facts)
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB | sqlite3.SQLITE_FORMAT:
            return damaged(path, error)
        case sqlite3.SQLITE_IOERR if wrote:
            # After a sync that failed the pages may or may not be on the disk.
            return UnknownOutcomeError("the disk failed during a write", **facts)
        case sqlite3.SQLITE_CONSTRAINT | sqlite3.SQLITE_ERROR | sqlite3.SQLITE_MISUSE:
            raise AssertionError(f"SQLite is used wrongly: {error}") from error
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM | sqlite3.SQLITE_AUTH:
            return DeniedError("the database may not be written", hint=LET_WRITE, **facts)
        case sqlite3.SQLITE_CANTOPEN if path.exists() and not os.access(path, os.R_OK | os.W_OK):
            return DeniedError("the database may not be opened", hint=LET_WRITE, **facts)
        case sqlite3.SQLITE_CANTOPEN:
            hint = "too many files may be open: raise the limit (`ulimit -n`), then try again"
            return UnavailableError("the database cannot be opened", hint=hint, **facts)
        case _:
            return UnavailableError("the database cannot be used", **facts)


def _connect(path: Path, mode: str = "rw") -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"file:{quote(str(path))}?mode={mode}",
        uri=True,
        timeout=BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,  # the lock sees to it that one thread uses it at a time
    )
    _add_checksum(connection)
    return connection


def _add_checksum(connection: sqlite3.Connection) -> None:
    connection.create_function("row_checksum", -1, row_checksum, deterministic=True)
