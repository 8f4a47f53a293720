"""The SQLite tables that hold a table's state, and how they are opened.

Sizes matter: with one reference a file takes under 200 bytes, so that a million files are one
database that a small lambda can open. `file_references` lies in the order (partition, file), so
that one leaf is one short scan.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from itertools import pairwise
from pathlib import Path

from lakebed.errors import CacheDamagedError, NewerFormatError
from lakebed.model import disk_errors
from lakebed.observe import events
from lakebed.statestore.table_state.database_errors import (
    DATABASE_ERRORS,
    is_doubtful,
    translated,
)
from lakebed.statestore.table_state.database_lock import begin_writing, hold_alone
from lakebed.statestore.table_state.format_number import columns_of, format_number
from lakebed.statestore.table_state.sums import damaged, lay_out_sums, verify_all

STATE_FORMAT = 4
PAGE_BYTES = 4_096
WAL_PAGES = 4_000
"""Pages of the write-ahead file, 16 MiB, before they move to the cache file: each move syncs."""
NEWER = (
    "upgrade this installation of lakebed; or end every newer process, and rename the file: this"
    " release makes its own"
)
ASIDE, ASIDE_MAX = ".damaged-", 2
"""Caches that did not prove themselves: suffix of their names, and how many of a table are kept."""
BUSY_SECONDS = 60.0
"""Seconds that a statement waits for other processes before it is refused."""
CACHE_KIB = 32 * 1024
"""Pages SQLite may keep in memory for one table: bounded by bytes, whatever the number of files."""

LAYOUT = """
CREATE TABLE head(
    only INTEGER PRIMARY KEY CHECK (only = 1), number INTEGER NOT NULL, at INTEGER NOT NULL,
    floor INTEGER NOT NULL, generation INTEGER NOT NULL, root INTEGER NOT NULL,
    partition_next INTEGER NOT NULL, dropped INTEGER NOT NULL,
    schema TEXT NOT NULL, settings TEXT NOT NULL);
CREATE TABLE commits(
    id TEXT PRIMARY KEY, digest BLOB NOT NULL, number INTEGER NOT NULL, base INTEGER NOT NULL,
    user INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE entry_times(number INTEGER PRIMARY KEY, at INTEGER NOT NULL);
CREATE TABLE partitions(
    id INTEGER PRIMARY KEY, parent INTEGER, dimension INTEGER NOT NULL, point BLOB NOT NULL,
    left INTEGER, right INTEGER, rows_unsplittable INTEGER NOT NULL DEFAULT 0);
CREATE TABLE file_references(
    partition INTEGER NOT NULL, file BLOB NOT NULL, rows INTEGER NOT NULL, exact INTEGER NOT NULL,
    min BLOB NOT NULL, max BLOB, size INTEGER NOT NULL, tail_offset INTEGER NOT NULL,
    checksum INTEGER NOT NULL, tail_checksum INTEGER NOT NULL, job INTEGER,
    PRIMARY KEY (partition, file)) WITHOUT ROWID;
CREATE INDEX references_by_file ON file_references(file);
CREATE INDEX references_by_job ON file_references(job) WHERE job IS NOT NULL;
CREATE TABLE jobs(
    key INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, partition INTEGER NOT NULL,
    number INTEGER NOT NULL, at INTEGER NOT NULL);
CREATE TABLE garbage(
    file BLOB PRIMARY KEY, number INTEGER NOT NULL, at INTEGER NOT NULL, size INTEGER NOT NULL
    ) WITHOUT ROWID;
CREATE TABLE pins(
    id TEXT PRIMARY KEY, number INTEGER NOT NULL, until INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE positions(
    name TEXT PRIMARY KEY, value BLOB NOT NULL, owner INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO head VALUES (1, 0, 0, 0, 0, 0, 1, 0, '', '{}');
"""
"""Statements that make format 1. A later format is what its upgrade makes of the format before: so
an old state that is upgraded and a new one are the same."""

UPGRADES: Mapping[int, Sequence[str]] = {
    1: (
        """CREATE TABLE last_entry(
    only INTEGER PRIMARY KEY CHECK (only = 1), number INTEGER NOT NULL, checksum BLOB)""",
        "INSERT INTO last_entry VALUES (1, 0, NULL)",
    ),
    2: (
        """CREATE TABLE connections(
    key INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, version INTEGER NOT NULL,
    number INTEGER NOT NULL)""",
        """CREATE TABLE tallies(
    connection INTEGER NOT NULL, name TEXT NOT NULL, hour INTEGER NOT NULL, read INTEGER NOT NULL,
    stored INTEGER NOT NULL, filtered INTEGER NOT NULL, quarantined INTEGER NOT NULL,
    deduplicated INTEGER NOT NULL, sampled_out INTEGER NOT NULL, discarded INTEGER NOT NULL,
    bytes INTEGER NOT NULL, PRIMARY KEY (connection, name, hour)) WITHOUT ROWID""",
        """CREATE TABLE items(
    connection INTEGER NOT NULL, item BLOB NOT NULL, number INTEGER NOT NULL,
    PRIMARY KEY (connection, item)) WITHOUT ROWID""",
        """CREATE TABLE gaps(
    connection INTEGER NOT NULL, name TEXT NOT NULL, number INTEGER NOT NULL, first BLOB NOT NULL,
    end BLOB NOT NULL, reason TEXT NOT NULL, PRIMARY KEY (connection, number, name)
    ) WITHOUT ROWID""",
        """CREATE TABLE errors_in_row(
    connection INTEGER NOT NULL, name TEXT NOT NULL, errors INTEGER NOT NULL,
    PRIMARY KEY (connection, name)) WITHOUT ROWID""",
        """CREATE TABLE watermarks(
    connection INTEGER PRIMARY KEY, time INTEGER, sealed INTEGER, reached INTEGER)""",
        """CREATE TABLE progress(
    connection INTEGER NOT NULL, name TEXT NOT NULL, event_time INTEGER, since INTEGER,
    said INTEGER, PRIMARY KEY (connection, name)) WITHOUT ROWID""",
        """CREATE TABLE windows(
    connection INTEGER NOT NULL, end INTEGER NOT NULL, seconds INTEGER NOT NULL,
    rows INTEGER NOT NULL, late INTEGER NOT NULL, sealed INTEGER, revision INTEGER NOT NULL,
    number INTEGER, PRIMARY KEY (connection, end, seconds)) WITHOUT ROWID""",
    ),
    3: (  # and its sums say how many rows are known
        """CREATE TABLE horizon(
    only INTEGER PRIMARY KEY CHECK (only = 1), number INTEGER NOT NULL)""",
        """CREATE TABLE tags(
    name TEXT PRIMARY KEY, number INTEGER NOT NULL, at INTEGER NOT NULL) WITHOUT ROWID""",
        """CREATE TABLE followers(
    name TEXT PRIMARY KEY, number INTEGER NOT NULL, until INTEGER NOT NULL,
    is_behind INTEGER NOT NULL) WITHOUT ROWID""",
    ),
}
"""Statements that turn a state of a format into one of the next. They add only what is not
digested, or only while it holds rows, so that states of old logs keep their digests (H14). Each
adds columns, by which a number that a disk changed is told from a newer release."""

_SUMS_AGAIN = ("DROP TABLE IF EXISTS row_sums", "DROP TABLE IF EXISTS partition_sums")
"""Run after them: sums are made when all tables are there."""

DIGESTED = (
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
FED = ("errors_in_row", "watermarks", "progress", "windows")
VERSIONS = ("horizon", "tags", "followers")
DIGESTED_WITH_ROWS = ("connections", "tallies", "items", "gaps", *FED, *VERSIONS)
"""Tables of later formats. Empty ones say nothing, as if they were not there."""


def digested(connection: sqlite3.Connection) -> list[str]:
    """Return the tables that a state's digest stands for."""
    query = "SELECT EXISTS(SELECT 1 FROM {})"
    filled = [
        table
        for table in DIGESTED_WITH_ROWS
        if connection.execute(query.format(table)).fetchone()[0]
    ]
    return [*DIGESTED, *filled]


def open_memory() -> sqlite3.Connection:
    """Return a new, empty state in memory."""
    connection = _connect(":memory:")
    connection.execute(f"PRAGMA page_size={PAGE_BYTES}")
    connection.execute("PRAGMA journal_mode=MEMORY")
    _lay_out(connection)
    return connection


def open_cache(path: Path, *, begin: Callable[[Path], object] | None = None) -> sqlite3.Connection:
    """Return the state in a cache file, new and empty if there was none. An older format is
    upgraded.

    Several processes may share the file (protocol H27); deleting it is always safe, while it is
    open too. begin: may put a database at the path when there is none.

    Raises:
        UnavailableError: it cannot be opened.
        NewerFormatError: a newer Lakebed made it; it was left as it is.
    """
    with _opening(path):
        try:
            return _opened(path, begin)
        except CacheDamagedError as error:
            _put_aside(path, _text(error))
            return _opened(path, begin)


def set_aside_if_damaged(path: Path, *, kept_max: int = ASIDE_MAX) -> bool:
    """Put a cache file that does not prove itself out of the way; the process that opens the
    path next makes it anew. Returns whether it did: another process may have been faster.

    Safe while processes have it open: they keep the file that they opened. kept_max: damaged files
    of this cache that are kept, to be looked at.
    """
    with _opening(path):
        problem = _problem(path)
        if problem:
            _put_aside(path, problem, kept_max)
        return bool(problem)


def problem_of_cache(path: Path) -> str:
    """Return why a cache file does not prove itself; "": it does, or there is none.

    Raises:
        UnavailableError: it cannot be read now.
    """
    with _opening(path):
        return _problem(path)


def _opened(path: Path, begin: Callable[[Path], object] | None) -> sqlite3.Connection:
    if not path.exists():
        _remove_companions(path)
        if begin is not None:
            begin(path)
    try:
        return _prepared(path)
    except DATABASE_ERRORS as error:
        if is_doubtful(error):  # its tables are not those of its format
            raise damaged("layout", problem=error) from error
        raise translated(error) from error


def _problem(path: Path) -> str:
    try:
        if path.exists():
            with closing(_connect(str(path))) as connection:
                connection.execute("BEGIN")
                _prove_format(connection)
                if format_number(connection) == STATE_FORMAT:  # sums of others are not known
                    verify_all(connection)
    except CacheDamagedError as damage:
        return _text(damage)
    except DATABASE_ERRORS as error:
        meaning = damaged("layout", problem=error) if is_doubtful(error) else translated(error)
        if isinstance(meaning, CacheDamagedError):
            return _text(meaning)
        raise meaning from error
    return ""


def _text(damage: CacheDamagedError) -> str:
    return " ".join(f"{name} {value}" for name, value in damage.facts.items())


def _put_aside(path: Path, problem: str, kept_max: int = ASIDE_MAX) -> None:
    """Rename a cache file, the newest to number 1, and drop the oldest."""
    names = [path.with_name(f"{path.name}{ASIDE}{number}") for number in range(1, kept_max + 1)]
    if kept_max:
        for older, newer in pairwise(reversed(names)):
            with suppress(FileNotFoundError):
                newer.replace(older)
        path.replace(names[0])
    else:
        path.unlink(missing_ok=True)
    _remove_companions(path)
    events.emit(events.CACHE_SET_ASIDE, cache=path.name, problem=problem)


def remove_cache(path: Path) -> None:
    """Delete a cache file; it is read again from snapshot and log when it is wanted."""
    with _opening(path):
        path.unlink(missing_ok=True)
        _remove_companions(path)


def _remove_companions(path: Path) -> None:
    for suffix in ("-wal", "-shm"):  # processes that have them open keep them
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def _prepared(path: Path) -> sqlite3.Connection:
    connection = _connect(str(path))
    try:
        _prove_format(connection)  # before anything is written
        found = format_number(connection)
        if found > STATE_FORMAT:
            raise NewerFormatError("a newer state", path=path, format=found, hint=NEWER)
        connection.execute(f"PRAGMA page_size={PAGE_BYTES}")
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=NORMAL")
        connection.execute(f"PRAGMA wal_autocheckpoint={WAL_PAGES}")
        if found != STATE_FORMAT:  # else no writer is waited for
            begin_writing(connection, seconds_max=BUSY_SECONDS)
            (upgrade if format_number(connection) else _lay_out)(connection)
            connection.execute("COMMIT")
    except BaseException:
        connection.rollback()
        connection.close()
        raise
    return connection


def _prove_format(connection: sqlite3.Connection) -> None:
    """Raise CacheDamagedError if the columns of a cache contradict the number of its format. Each
    format has other columns: so a number that is not ours is believed beside other columns than
    ours, and the cache of a newer release is never taken for a damaged one."""
    found = format_number(connection)
    if found == STATE_FORMAT:  # its sums prove more than that
        return
    columns = columns_of(connection)
    if found == 0 and not columns:  # new
        return
    if found < 1:
        raise damaged("layout", problem=f"it says format {found}")
    with closing(open_memory()) as made:
        if columns == columns_of(made):
            problem = f"it says format {found}, and has the columns of format {STATE_FORMAT}"
            raise damaged("layout", problem=problem)


def require_format(connection: sqlite3.Connection) -> None:
    """Raise CacheDamagedError unless a state says that it is of this format."""
    found = format_number(connection)
    if found != STATE_FORMAT:
        raise damaged("layout", problem=f"it says format {found}")


def upgradable_format(connection: sqlite3.Connection, path: str) -> int:
    """Return the format of a snapshot; below 1: it is none. path: of it, for errors.

    Raises:
        NewerFormatError: a newer Lakebed made it.
    """
    found = format_number(connection)
    if found > STATE_FORMAT:
        raise NewerFormatError("a newer state", path=path, format=found)
    return found


def upgrade(connection: sqlite3.Connection) -> None:
    """Bring a state of an older format to this one. Run it inside a transaction."""
    found = format_number(connection)
    if not 1 <= found <= STATE_FORMAT:
        raise AssertionError(f"a state of a known format, got {found}")
    for before in range(found, STATE_FORMAT):
        for statement in UPGRADES[before]:
            connection.execute(statement)
    if found < STATE_FORMAT:
        for statement in _SUMS_AGAIN:
            connection.execute(statement)
        lay_out_sums(connection)
        connection.execute(f"PRAGMA user_version={STATE_FORMAT}")


@contextmanager
def _opening(path: Path) -> Iterator[None]:
    """Let one process at a time open the cache: SQLite cannot share what one is making."""
    doing = "opening the cache of a state"
    with disk_errors.translated(doing), path.with_name(path.name + ".lock").open("a+") as lock:
        hold_alone(lock, path, seconds_max=BUSY_SECONDS)
        yield


def _connect(path: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        path,
        isolation_level=None,
        timeout=BUSY_SECONDS,
        check_same_thread=False,
        cached_statements=256,
    )
    connection.execute(f"PRAGMA cache_size=-{CACHE_KIB}")
    return connection


def _lay_out(connection: sqlite3.Connection) -> None:
    for statement in LAYOUT.split(";"):
        if statement.strip():
            connection.execute(statement)
    connection.execute("PRAGMA user_version=1")
    upgrade(connection)
