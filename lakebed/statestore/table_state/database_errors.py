"""Tells what errors of a state's database mean: damage, a full disk, a bug, or wait."""

from __future__ import annotations

import sqlite3

from lakebed.errors import DeniedError, LakebedError, StorageFullError, UnavailableError
from lakebed.model import disk_errors
from lakebed.statestore.table_state.sums import damaged

FREE_SPACE = "free space, then send the same request again"
DATABASE_ERRORS = (sqlite3.Error, UnicodeDecodeError, MemoryError)
"""Errors of a database, a damaged one too: SQLite quotes its names, and they may be no text."""

_CUT = {sqlite3.SQLITE_IOERR_SHORT_READ, sqlite3.SQLITE_IOERR}
"""Error codes of a file that was cut while it is open. SQLite says the second while it reads the
tables' names, whatever the disk said: a state that a disk refuses is made anew, too."""


def is_doubtful(error: Exception) -> bool:
    """Return whether a bug or a damaged database may have raised an error; a value that is no text
    has no code."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    return code in {sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_TOOBIG}


def is_full(error: Exception) -> bool:
    """Return whether an error says that a database or a file could not grow, as the disk is
    full."""
    if isinstance(error, OSError):
        return disk_errors.is_full(error)
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_OK) & 0xFF == sqlite3.SQLITE_FULL


def translated(error: Exception, full_hint: str = FREE_SPACE) -> LakebedError:
    """Return what the catcher of a failing database should do next; a bug is raised as it is.
    full_hint: what to do when the disk is full."""
    extended = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_MISUSE)
    if extended in _CUT:
        return damaged("pages", problem=error)
    match extended & 0xFF:
        case sqlite3.SQLITE_FULL:
            return StorageFullError("no room for the state", hint=full_hint)
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            return damaged("pages", problem=error)
        case sqlite3.SQLITE_CONSTRAINT | sqlite3.SQLITE_ERROR | sqlite3.SQLITE_MISUSE:
            raise AssertionError(f"SQLite is used wrongly: {error}") from error
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM | sqlite3.SQLITE_AUTH:
            hint = "let the user who runs this read and write in the folder of states"
            return DeniedError("the state may not be written", reason=error, hint=hint)
        case sqlite3.SQLITE_CANTOPEN:
            hint = (
                "look who may write in the folder of states; too many files may be open"
                " (`ulimit -n`)"
            )
            return UnavailableError("the state cannot be opened", reason=error, hint=hint)
        case _:
            return UnavailableError("the state is busy", reason=error)
